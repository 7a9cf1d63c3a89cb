//! Random small DVE models as text, and their state spaces by the plain definition.

use overtake::dve::{Configuration, DveStep, Memory, Site, System};
use overtake::limits::Limits;
use overtake::semantics::dve::steps;
use std::collections::{BTreeSet, HashMap};

/// A stream of small numbers from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below the number of sides.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % sides
    }

    pub(crate) fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }

    /// Once in so many times.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }
}

/// What a model may have, beside processes over shared variables.
#[derive(Clone, Copy)]
pub(crate) struct Taste {
    pub errors: bool,
    pub channels: bool,
    pub property: bool,
}

/// Names that conditions may be about.
pub(crate) const CONDITIONS: [&str; 9] =
    ["x == 1", "y == 0", "a[0] == 1", "x == y", "P0.s1", "P1.s1", "P0.s0 or P1.s0", "x + y > 1", "a[1] != 0"];

pub(crate) fn model(dice: &mut Dice, taste: Taste) -> String {
    let mut text = "byte x, y; byte a[2];\n".to_string();
    if taste.channels {
        text += "channel c; channel {byte} q[2];\n";
    }
    let processes = 2 + dice.one_in(4) as usize;
    for p in 0..processes {
        text += &process(dice, taste, p);
    }
    if taste.property {
        let (p, q) = (dice.pick(&CONDITIONS), dice.pick(&CONDITIONS));
        text += &format!(
            "process Never {{ state q1, q2; init q1; accept q2; trans q1 -> q1 {{}}, \
             q1 -> q2 {{ guard {p}; }}, q2 -> q2 {{ guard not ({q}); }}; }}\nsystem async property Never;\n"
        );
    } else {
        text += "system async;\n";
    }
    text
}

fn process(dice: &mut Dice, taste: Taste, p: usize) -> String {
    let states = 2 + dice.roll(3);
    let names: Vec<String> = (0..states).map(|s| format!("s{s}")).collect();
    let mut text = format!("process P{p} {{ byte l; state {}; init s0;", names.join(", "));
    if dice.one_in(8) {
        text += " commit s1;";
    }
    if dice.one_in(4) {
        text +=
            &format!(" assert s1: {};", dice.pick(&["x < 2", "l == 0 or y == 0", "a[0] == a[1] or l != 1"]));
    }
    let transitions: Vec<String> = (0..2 + dice.roll(4))
        .map(|i| {
            let from = if i < states { i } else { dice.roll(states) };
            format!("s{from} -> s{} {{ {}}}", dice.roll(states), body(dice, taste))
        })
        .collect();
    text + &format!(" trans {}; }}\n", transitions.join(", "))
}

fn body(dice: &mut Dice, taste: Taste) -> String {
    let mut text = String::new();
    if dice.one_in(2) {
        let guards =
            ["x == 0", "y != 1", "l == 1", "a[l] == 0", "a[0] == a[1]", "x < 2 and l == 0", "not l == 1"];
        text += &format!("guard {}; ", dice.pick(&guards));
    }
    if taste.channels && dice.one_in(3) {
        text += &format!("sync {}; ", dice.pick(&["c!x", "c?l", "c?y", "q!l", "q?x", "q!1", "q?l"]));
    }
    let safe = [
        "x = 1",
        "x = 0",
        "y = 1 - y % 2",
        "l = 1 - l % 2",
        "l = x % 2",
        "a[l % 2] = 1",
        "a[0] = y % 2",
        "a[1] = 0",
        "y = x",
    ];
    let risky = ["x = x + 100", "x = x - 1", "a[l] = l + 1", "y = 1 / l", "l = l + 1", "l = a[x]"];
    let effects: Vec<&str> = (0..dice.roll(3))
        .map(|_| if taste.errors && dice.one_in(4) { dice.pick(&risky) } else { dice.pick(&safe) })
        .collect();
    if !effects.is_empty() {
        text += &format!("effect {}; ", effects.join(", "));
    }
    text
}

/// A model whose transitions read or write one element of a global variable at most.
pub(crate) fn with_one_access(dice: &mut Dice) -> String {
    let mut text =
        format!("byte x = {}, y; byte a[2] = {{{}}}; const byte N = 2;\n", dice.roll(2), dice.roll(3));
    for p in 0..2 {
        let states = 2 + dice.roll(3);
        let names: Vec<String> = (0..states).map(|s| format!("s{s}")).collect();
        text += &format!("process P{p} {{ byte l = {}, k; byte m[2]; ", dice.roll(2));
        text += &format!("state {}; init s{};", names.join(", "), dice.roll(states));
        if dice.one_in(4) {
            text += dice.pick(&[" assert s0: l < 2;", " assert s1: m[0] == k or l == 0;"]);
        }
        let transitions: Vec<String> = (0..2 + dice.roll(5))
            .map(|i| {
                let from = if i < states { i } else { dice.roll(states) };
                format!("s{from} -> s{} {{ {}}}", dice.roll(states), one_access(dice))
            })
            .collect();
        text += &format!(" trans {}; }}\n", transitions.join(", "));
    }
    text + "system async;\n"
}

fn one_access(dice: &mut Dice) -> String {
    let own = ["l == 0", "k < 2", "l != k", "m[1] == 0", "not l == 1", "(l + k) % 2 == 0", "k < N"];
    let local = ["l = 1 - l % 2", "k = k + 1", "k = 0", "m[0] = l", "m[1] = k", "l = 0", "k = k % 2"];
    let place = dice.pick(&["x", "y", "a[0]", "a[1]", "a", "a[l]", "a[k]", "a[1 - l % 2]"]);
    let (guard, effect) = match dice.roll(4) {
        0 => {
            let read = dice.pick(&["PLACE == 0", "PLACE != 1", "PLACE < 2", "PLACE == l", "PLACE"]);
            let around = dice.pick(&[
                "READ",
                "READ and OWN",
                "OWN and READ",
                "OWN or READ",
                "not (READ)",
                "OWN imply READ",
            ]);
            let guard = around.replace("READ", read).replace("OWN", dice.pick(&own)).replace("PLACE", place);
            (Some(guard), dice.one_in(2).then(|| dice.pick(&local).to_string()))
        }
        1 => {
            let guard = dice.one_in(2).then(|| dice.pick(&own).to_string());
            (guard, Some(format!("{}, l = {place}, {}", dice.pick(&local), dice.pick(&local))))
        }
        2 => {
            let value = dice.pick(&["0", "1", "l", "k", "l + k", "1 - l"]);
            let guard = dice.one_in(2).then(|| dice.pick(&own).to_string());
            (guard, Some(format!("{}, {place} = {value}, {}", dice.pick(&local), dice.pick(&local))))
        }
        _ => (Some(dice.pick(&own).to_string()), dice.one_in(2).then(|| dice.pick(&local).to_string())),
    };
    let guard = guard.map_or(String::new(), |guard| format!("guard {guard}; "));
    guard + &effect.map_or(String::new(), |effect| format!("effect {effect}; "))
}

pub(crate) fn read(text: &str) -> System {
    match overtake::front::dve::read(text, &Limits::default()) {
        Ok((system, _)) => system,
        Err(wrong) => panic!("{:?}\n{text}", wrong.diagnostics()),
    }
}

/// Slots, with some writes atomic and some transitions barriers.
pub(crate) fn slots(dice: &mut Dice, system: &System) -> Memory {
    let some = dice.one_in(2);
    let atomic: BTreeSet<Site> = system.sites().into_iter().filter(|_| some && dice.one_in(3)).collect();
    let mut barriers = BTreeSet::new();
    for (p, process) in system.processes[..system.active()].iter().enumerate() {
        barriers.extend((0..process.transitions.len()).filter(|_| some && dice.one_in(6)).map(|t| (p, t)));
    }
    Memory::Slots { atomic, barriers }
}

/// A whole state space: `None` is the state of a model that has gone wrong.
pub(crate) struct PlainSpace {
    pub states: Vec<Option<Configuration>>,
    pub edges: Vec<Vec<(DveStep, usize)>>,
}

/// All states, unless there are too many.
pub(crate) fn space(system: &System, memory: &Memory, most: usize) -> Option<PlainSpace> {
    let start = Some(Configuration::initial(system));
    let mut numbers = HashMap::from([(start.clone(), 0)]);
    let mut space = PlainSpace { states: vec![start], edges: vec![] };
    while space.edges.len() < space.states.len() {
        let from = space.states[space.edges.len()].clone();
        let mut edges = Vec::new();
        for (step, to) in from.map_or(vec![], |from| steps(system, memory, &from)) {
            let to = to.ok();
            let number = *numbers.entry(to.clone()).or_insert_with(|| {
                space.states.push(to);
                space.states.len() - 1
            });
            edges.push((step, number));
        }
        if space.states.len() > most {
            return None;
        }
        space.edges.push(edges);
    }
    Some(space)
}
