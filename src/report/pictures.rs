//! Pictures by themselves: of runs, cycles, and control flow.

use super::document::Block;
use super::picture::{self, Picture, flow, lanes};
use crate::model::Program;

/// A picture with what stands above it.
#[derive(Clone, Debug)]
pub struct Titled(pub(super) String, pub(super) Picture);

/// The pictures of what an answer rests on. `number` is how many come before them in the file.
pub fn of(blocks: &[Block], file: &str, number: usize) -> Vec<Titled> {
    picture::of_blocks(blocks, file, number)
        .into_iter()
        .map(|(title, picture)| Titled(title, picture))
        .collect()
}

/// A file of pictures, one below the other; an empty one where there is nothing to show.
pub fn file(pictures: &[Titled]) -> String {
    let all: Vec<(&str, &Picture)> =
        pictures.iter().map(|Titled(title, picture)| (&title[..], picture)).collect();
    picture::file(&all)
}

/// The picture of a run, as part of a page; nothing of what is no run.
pub fn inline(run: &Block) -> String {
    let Block::Run(run) = run else { return String::new() };
    let rows = lanes::Rows::of(run, 0..run.rows.len());
    lanes::picture(run, &rows, "walk").inline("The run so far")
}

/// Control flow, as a file of its own.
pub fn control_flow(program: &Program, name: &str) -> String {
    picture::file(&[(name, &flow::picture(program))])
}
