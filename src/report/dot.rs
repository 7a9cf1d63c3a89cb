//! What does the control flow look like? Graphviz text: one cluster for each thread, instructions on the
//! arrows.
//!
//! A thread's end is a double circle, its beginning has an arrow from nowhere, and locations that a property
//! names are filled. Names of the program appear in labels alone, escaped; node names are numbers.

use crate::limits::{Limit, Limits, Text};
use crate::model::{Atom, Loc, Program, ThreadId};
use std::collections::HashSet;
use std::fmt::{self, Write};

pub fn dot(program: &Program, limits: &Limits) -> Result<String, Limit> {
    let goals = goals(program);
    Text::of(limits, |text| {
        text.write_str(
            "digraph program {\n  node [shape=circle, fontname=\"sans-serif\"];\n  edge [fontname=\"monospace\"];\n",
        )?;
        program.thread_ids().try_for_each(|t| cluster(program, t, &goals, text))?;
        text.write_str("}\n")
    })
}

/// The locations that properties name.
pub(super) fn goals(program: &Program) -> HashSet<(ThreadId, Loc)> {
    let mut goals = HashSet::new();
    for property in program.properties() {
        property.pred.for_each_atom(&mut |atom| {
            if let Atom::At(t, locs) = atom {
                goals.extend(locs.iter().map(|loc| (*t, *loc)));
            }
        });
    }
    goals
}

fn cluster(program: &Program, t: ThreadId, goals: &HashSet<(ThreadId, Loc)>, text: &mut Text) -> fmt::Result {
    let (thread, k) = (program.thread(t), t.index());
    writeln!(text, "  subgraph cluster_{k} {{\n    label=\"{}\";", escape(thread.name()))?;
    writeln!(text, "    start_{k} [shape=point];\n    start_{k} -> t{k}_{};", thread.initial().0)?;
    for loc in thread.locations() {
        let labels = thread.location(loc).labels.join("\n");
        let name = if labels.is_empty() { loc.0.to_string() } else { labels };
        let shape = if loc == thread.end() { ", shape=doublecircle" } else { "" };
        let fill = if goals.contains(&(t, loc)) { ", style=filled, fillcolor=lightsalmon" } else { "" };
        writeln!(text, "    t{k}_{} [label=\"{}\"{shape}{fill}];", loc.0, escape(&name))?;
    }
    for (_, edge) in thread.edges() {
        let label = escape(&thread.show_instr(program, &edge.instr));
        writeln!(text, "    t{k}_{} -> t{k}_{} [label=\"{label}\"];", edge.from.0, edge.to.0)?;
    }
    text.write_str("  }\n")
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tso;

    #[test]
    fn graphs_mark_the_beginning_the_end_and_the_goal() {
        let source = "shared x\nthread p\n store [x], 1\ncs: nop\nend\nforbid p@cs";
        let program = tso::read(source, &[], &Limits::default()).expect("the source is readable").program;
        let text = dot(&program, &Limits::default()).expect("nothing is limited");
        for part in [
            "subgraph cluster_0 {\n    label=\"p\";",
            "start_0 -> t0_0;",
            "t0_1 [label=\"cs\", style=filled, fillcolor=lightsalmon];",
            "t0_2 [label=\"2\", shape=doublecircle];",
            "t0_0 -> t0_1 [label=\"store [x], 1\"];",
        ] {
            assert!(text.contains(part), "no `{part}` in\n{text}");
        }
    }

    #[test]
    fn names_cannot_leave_their_label() {
        assert_eq!(escape("a\"];\\\n"), "a\\\"];\\\\\\n");
    }
}
