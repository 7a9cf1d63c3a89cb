//! Programs that grow with a parameter, so that it can be seen how times grow. Their text is part of the
//! binary: a comparison needs no other files.

/// A bundled program with a parameter `N`, and the sizes at which it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub name: &'static str,
    /// Below `programs`.
    pub file: &'static str,
    pub text: &'static str,
    pub sizes: &'static [i64],
}

pub const PARAMETER: &str = "N";

macro_rules! family {
    ($name:literal, $file:literal, $sizes:expr) => {
        Family {
            name: $name,
            file: $file,
            text: include_str!(concat!("../../programs/", $file)),
            sizes: $sizes,
        }
    };
}

/// The sizes are those of the published tables: as far as somebody gets within seconds, and one step on.
pub const FAMILIES: &[Family] = &[
    family!("lamport", "lamport/lamport1.tso", &[2, 3, 4, 5, 6, 7, 8]),
    family!("lamport-fenced", "lamport/lamport1-fenced.tso", &[2, 3, 4, 5, 6]),
    family!("peterson", "peterson/filter.tso", &[2, 3, 4]),
    family!("peterson-fenced", "peterson/filter-fenced.tso", &[2, 3, 4]),
    family!("burns", "burns/burns.tso", &[2, 3, 4, 5]),
    family!("burns-fenced", "burns/burns-fenced.tso", &[2, 3, 4, 5]),
    family!("dijkstra", "dijkstra/dijkstra.tso", &[2, 3, 4]),
    family!("dijkstra-fenced", "dijkstra/dijkstra-fenced.tso", &[2, 3, 4]),
    family!("bakery", "bakery/bakery.tso", &[2, 3, 4]),
    family!("bakery-fenced", "bakery/bakery-fenced.tso", &[2, 3, 4]),
    family!("szymanski", "szymanski/szymanski.tso", &[2, 3, 4]),
    family!("szymanski-fenced", "szymanski/szymanski-fenced.tso", &[2, 3, 4]),
    family!("diamond", "diamond/diamond.tso", &[2, 10, 50, 200, 1000, 2000]),
    family!("diamond-fenced", "diamond/diamond-fenced.tso", &[2, 10, 50, 100, 200]),
    family!("loop", "loop/loop.tso", &[2, 10, 20, 50, 100, 200, 500]),
    family!("loop-fenced", "loop/loop-fenced.tso", &[2, 10, 20, 50, 100]),
    family!("sb", "litmus/ring.tso", &[2, 4, 6, 8, 10]),
    family!("sb-fenced", "litmus/ring-fences.tso", &[2, 4, 6, 8, 10]),
    family!("ticket", "ticket/ticket.tso", &[2, 3, 4, 5, 6]),
    family!("mcs", "mcs/mcs.tso", &[2, 3, 4, 5]),
];

pub fn named(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;
    use crate::limits::Limits;

    #[test]
    fn every_family_can_be_read_at_its_smallest_size() {
        for family in FAMILIES {
            let define = [(PARAMETER.to_string(), family.sizes[0])];
            assert!(tso::read(family.text, &define, &Limits::default()).is_ok(), "{}", family.name);
            assert!(family.sizes.is_sorted(), "{}", family.name);
        }
    }

    #[test]
    fn names_are_unique() {
        for (k, family) in FAMILIES.iter().enumerate() {
            assert!(FAMILIES[..k].iter().all(|f| f.name != family.name && f.file != family.file));
        }
    }
}
