//! The folder of results. A file is written whole or not at all: first beside its place, then renamed into
//! it.

use crate::compare::record::Comparison;
use crate::compare::{plot, summary};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Made if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Folder, String> {
        std::fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Folder(path.to_path_buf()))
    }

    /// The file to begin with.
    pub(crate) fn main(&self, stem: &str) -> PathBuf {
        self.0.join(format!("{stem}.md"))
    }

    /// Rows, data, page and pictures.
    pub(crate) fn write(&self, comparison: &Comparison, stem: &str) -> Result<(), String> {
        self.write_file(&format!("{stem}.csv"), &comparison.csv())?;
        self.write_file(&format!("{stem}.ron"), &comparison.ron())?;
        for program in comparison.programs() {
            if plot::is_worthwhile(comparison, program) {
                self.write_file(&plot::file_name(stem, program), &plot::svg(comparison, program)?)?;
            }
        }
        self.write_file(&format!("{stem}.md"), &summary::page(comparison, stem))
    }

    pub(crate) fn write_file(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(name);
        let write = || {
            let everyone = Permissions::from_mode(0o666);
            let mut file = tempfile::Builder::new().permissions(everyone).tempfile_in(&self.0)?;
            file.write_all(text.as_bytes())?;
            file.persist(&path).map(|_| ()).map_err(|e| e.error)
        };
        write().map_err(|e| format!("{}: {e}", path.display()))
    }
}
