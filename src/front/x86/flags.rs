//! What does arithmetic leave behind, and which conditions look at it?

/// What arithmetic leaves behind for jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Flag {
    /// The result is 0.
    Zero,
    /// The result is negative.
    Sign,
    /// The result does not fit as an unsigned number.
    Carry,
    /// The result does not fit as a signed number.
    Overflow,
    /// `Sign` differs from `Overflow`: the true result is negative. No flag of the processor, but what most
    /// jumps look at.
    Less,
}

impl Flag {
    pub(crate) const ALL: [Flag; 5] = [Flag::Zero, Flag::Sign, Flag::Carry, Flag::Overflow, Flag::Less];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Flag::Zero => "ZF",
            Flag::Sign => "SF",
            Flag::Carry => "CF",
            Flag::Overflow => "OF",
            Flag::Less => "LT",
        }
    }

    /// The flag that a test may ask for by name.
    pub(crate) fn named(name: &str) -> Option<Flag> {
        Flag::ALL.into_iter().find(|f| *f != Flag::Less && f.name().eq_ignore_ascii_case(name))
    }
}

/// When a conditional instruction acts: one of these flags is set, or none of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub flags: &'static [Flag],
    pub set: bool,
}

/// The conditions by the letters behind `j`, `set` and `cmov`.
pub(crate) fn condition(letters: &str) -> Option<Condition> {
    let (flags, set): (&'static [Flag], bool) = match letters {
        "e" | "z" => (&[Flag::Zero], true),
        "ne" | "nz" => (&[Flag::Zero], false),
        "b" | "c" | "nae" => (&[Flag::Carry], true),
        "ae" | "nb" | "nc" => (&[Flag::Carry], false),
        "be" | "na" => (&[Flag::Carry, Flag::Zero], true),
        "a" | "nbe" => (&[Flag::Carry, Flag::Zero], false),
        "l" | "lt" | "nge" => (&[Flag::Less], true),
        "ge" | "nl" => (&[Flag::Less], false),
        "le" | "ng" => (&[Flag::Less, Flag::Zero], true),
        "g" | "gt" | "nle" => (&[Flag::Less, Flag::Zero], false),
        "s" => (&[Flag::Sign], true),
        "ns" => (&[Flag::Sign], false),
        "o" => (&[Flag::Overflow], true),
        "no" => (&[Flag::Overflow], false),
        _ => return None,
    };
    Some(Condition { flags, set })
}
