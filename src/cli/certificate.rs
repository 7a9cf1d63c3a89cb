//! Certificates as files: `--certificate` writes one, `overtake verify` judges one.

use super::interrupt::Interrupt;
use super::terminal::Terminal;
use super::written::{self, OutputArgs, ToldAnswer};
use super::{Exit, InputArgs, LimitArgs, SearchArgs, answer, input};
use crate::certify::Doubt;
use crate::certify::certificate::{Certificate, Unreadable};
use crate::engine::certificate::Uncertified;
use crate::query::{Limit, Limits, Verdict};
use crate::report::certificate::{Claim, Judgement, Written};
use crate::report::document::{Block, Document};
use crate::report::{self, json};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Why a certificate cannot be asked for in this way, if so.
pub(crate) fn refusal(path: Option<&Path>, search: &SearchArgs) -> Option<&'static str> {
    (path.is_some() && search.files.len() > 1).then_some("a certificate is about one program: name one file")
}

/// What came of writing a certificate, and how the command ends if that has failed.
pub(crate) struct Attempted {
    written: Result<Written, String>,
    exit: Exit,
}

/// Writes the certificate, if there is one. An error that is the file's has been shown.
pub(crate) fn write(
    certificate: Result<Certificate, Uncertified>,
    path: &Path,
    limits: &Limits,
    terminal: &Terminal,
) -> Attempted {
    let name = path.display().to_string();
    let bytes = certificate.and_then(|certificate| Ok(certificate.write(limits)?));
    let (written, exit) = match bytes {
        Err(Uncertified::Limit(limit)) => (Err(report::limit_reached(&limit)), Exit::Good),
        Err(why) => (Err(why.to_string()), Exit::Good),
        Ok(bytes) => match std::fs::write(path, &bytes) {
            Ok(()) => (Ok(Written { path: name, bytes: bytes.len() }), Exit::Good),
            Err(e) => {
                let failed = format!("{name}: {e}");
                terminal.error(&failed);
                (Err(failed), Exit::BadInput)
            }
        },
    };
    Attempted { written, exit }
}

/// Shows the document of an answer, with what came of its certificate if one was asked for.
pub(crate) fn show(
    document: Document<'_>,
    attempted: Option<Attempted>,
    search: &SearchArgs,
    terminal: &Terminal,
) -> Exit {
    match attempted {
        None => answer::show(&document, search, terminal),
        Some(Attempted { written, exit }) => {
            let document = report::certificate::add(document, &written);
            answer::show(&document, search, terminal).max(exit)
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The program; `-` is standard input (with --from)
    file: PathBuf,
    /// The certificate
    certificate: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Prints a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn verify(args: &VerifyArgs, terminal: &Terminal) -> Exit {
    written::with_object("verify", &args.file, args.json, terminal, || judged(args, terminal))
}

fn judged(args: &VerifyArgs, terminal: &Terminal) -> Exit {
    let start = Instant::now();
    let limits = Interrupt::new().watch(args.limits.limits());
    let unknown = |limit: &Limit| terminal.limit_reached(&args.file, limit);
    terminal.parts().wanted = args.output.wants_any();
    let program = match input::read(&args.file, &args.input, &limits, terminal, unknown) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    let of_certificate = |limit: &Limit| terminal.limit_reached(&args.certificate, limit);
    let bytes = match input::read_bytes(&args.certificate, &limits, terminal, of_certificate) {
        Ok(bytes) => bytes,
        Err(exit) => return exit,
    };
    let certificate = match Certificate::read(&bytes, &limits) {
        Ok(certificate) => certificate,
        Err(Unreadable::Limit(limit)) => return of_certificate(&limit),
        Err(Unreadable::Wrong(why)) => {
            terminal.error(&format!("{}: {why}", args.certificate.display()));
            return Exit::BadInput;
        }
    };
    let define = args.input.parameters().expect("the program was read with them");
    let flaw = match certificate.verify(&program, &define, &limits) {
        Ok(()) => None,
        Err(Doubt::Limit(limit)) => return of_certificate(&limit),
        Err(Doubt::Refuted(why)) => Some(why.to_string()),
    };
    let header = &certificate.header;
    let property = header.property.map(|number| (number, header.properties.join(", ")));
    let claim = Claim {
        command: &header.command,
        model: header.model.name(),
        verdict: &header.verdict,
        property: property.as_ref().map(|(number, text)| (*number, text.as_str())),
    };
    let judgement = Judgement {
        file: &args.file.display().to_string(),
        certificate: &args.certificate.display().to_string(),
        claim,
        flaw,
        time_ms: json::milliseconds(start.elapsed()),
    };
    terminal.print(&match args.json {
        true => format!("{}\n", judgement.json()),
        false => judgement.text(),
    });
    let verdict = if judgement.flaw.is_none() { Verdict::Holds } else { Verdict::Fails };
    let told = ToldAnswer {
        object: &judgement.json(),
        verdict,
        question: "Is the certificate right?",
        blocks: &[Block::line(judgement.text().lines().skip(1).collect::<String>())],
        costs: &[],
        output: judgement.text(),
    };
    terminal.parts().add_told(told, &args.output);
    Exit::from(verdict).max(terminal.parts().write(&args.output, terminal))
}
