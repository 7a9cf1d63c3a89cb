//! Two answers to one question. What can settle it is asked, under the same limits, and the program is kept
//! as everybody was given it. Who is right is decided in `compare::judge`.

use super::contest::{Contest, fresh};
use super::files::Folder;
use super::process;
use super::subjects::Subject;
use crate::compare::export::Export;
use crate::compare::judge::{self, Disagreement, Opinion};
use crate::compare::record::{Comparison, Row};
use crate::compare::{Discipline, own, reading};
use crate::limits::Limits;

impl Contest<'_> {
    /// The judgement about rows that differ; `keep` says where files go and what their names begin with.
    pub(crate) fn settle(
        &self,
        subject: &Subject,
        question: Discipline,
        rows: &[Row],
        before: &Comparison,
        keep: Option<(&Folder, &str)>,
    ) -> Result<Disagreement, String> {
        let opinion = if judge::is_settled(rows) { None } else { self.opinion(subject, question) };
        let mut disagreement = judge::judge(rows, opinion);
        if let Some((folder, stem)) = keep {
            let stem = format!("{stem}-disagreement-{}", before.disagreements.len() + 1);
            disagreement.kept = self.exported(subject, rows, folder, &stem)?;
        }
        Ok(disagreement)
    }

    /// What overtake says when it is asked in another way, the first time that it comes to an end.
    fn opinion(&self, subject: &Subject, question: Discipline) -> Option<Opinion> {
        let path = std::env::current_exe().ok()?;
        let folder = self.scratch.path().join("opinion");
        let file = Export::GIVEN.file_name(&subject.source);
        fresh(&folder, &file, &subject.source.text).ok()?;
        let asked = self.asked(subject, question, &file, None);
        for (whose, command) in own::opinions(&asked) {
            self.status.set_message(format!("{}: {whose} is asked", subject.name));
            let stop = &self.rules.stop;
            let finished = process::run(&command, &path, &folder, self.rules.limits, stop).ok()?;
            if let Some(verdict) = reading(&own::WAY, &finished, &asked).said.verdict() {
                return Some(Opinion { whose: whose.to_string(), verdict });
            }
        }
        None
    }

    /// Keeps the program as the peers were given it, once for each format.
    fn exported(
        &self,
        subject: &Subject,
        rows: &[Row],
        folder: &Folder,
        stem: &str,
    ) -> Result<Vec<String>, String> {
        let mut kept: Vec<String> = Vec::new();
        for row in rows.iter().filter(|row| !row.verdicts().is_empty()) {
            let Some(contestant) = self.contestants.iter().find(|c| c.name == row.contestant) else {
                continue;
            };
            let format = contestant.way.reads;
            let file = format.file_name(&subject.source);
            let name = format!("{stem}.{}", file.rsplit('.').next().unwrap_or("txt"));
            if !kept.contains(&name) {
                // What the rows are about is kept even after Ctrl-C, as they are.
                let text = format.text(&subject.source, row.question, &Limits::default())?;
                folder.write_file(&name, &text)?;
                kept.push(name);
            }
        }
        Ok(kept)
    }
}
