//! What does a process do? Statements, separated by `;`.
//!
//! A bad statement is skipped up to the `;` or the closing bracket behind it, with the brackets it has
//! opened.

use super::RmmParser;
use crate::front::diagnostics::{Parsed, Problem, Reported, shorten};
use crate::front::rmm::ast::{Name, PlaceKind, RmmPlace, Stmt, StmtKind};
use crate::front::rmm::lex::{RmmKind, RmmToken};
use crate::model::FenceKinds;

const STATEMENTS: [&str; 15] = [
    "nop", "read", "write", "syncrd", "syncwr", "fence", "ssfence", "llfence", "locked", "slocked", "cas",
    "assume", "if", "while", "either",
];
/// Longer statements are cut short in traces.
const TOKENS_SHOWN: usize = 60;

impl<'s> RmmParser<'s, '_> {
    /// Up to something that no statement begins with.
    pub(super) fn statements(&mut self) -> Vec<Stmt<'s>> {
        let mut list = Vec::new();
        loop {
            match self.labelled() {
                Ok(stmt) => list.push(stmt),
                Err(Reported) => self.skip_statement(),
            }
            if self.eat(";").is_some() {
                if self.ends_list() {
                    let problem =
                        Problem::warning("a `;` stands between statements, and not behind the last one");
                    self.problems.report(problem.at(self.last_span()));
                    return list;
                }
            } else if self.begins_statement() {
                self.unexpected("`;` before the next statement");
            } else {
                return list;
            }
        }
    }

    fn ends_list(&self) -> bool {
        self.kind() == RmmKind::EndOfFile || ["}", "or", "process"].iter().any(|w| self.at(w))
    }

    fn begins_statement(&self) -> bool {
        let labelled = self.token().is_name() && (self.follows(":") || self.follows(":="));
        labelled
            || self.at("goto")
            || STATEMENTS.iter().any(|w| self.at(w))
            || self.kind() == RmmKind::Register
    }

    fn skip_statement(&mut self) {
        let mut depth = 0;
        while self.kind() != RmmKind::EndOfFile && !self.at("process") {
            match self.token().text {
                "{" => depth += 1,
                "}" if depth > 0 => depth -= 1,
                ";" | "}" | "or" if depth == 0 => return,
                _ => {}
            }
            self.give_up_token();
        }
    }

    fn labelled(&mut self) -> Parsed<Stmt<'s>> {
        self.deeper(|p| {
            let first = p.next;
            let label = match p.token().is_name() && p.follows(":") {
                true => {
                    let token = p.bump();
                    p.bump();
                    Some(Name { text: token.text, span: token.span })
                }
                false => None,
            };
            if let Some(label) = label.filter(|_| p.ends_list()) {
                let problem =
                    Problem::error(format!("no statement behind the label `{}`", shorten(label.text)));
                let help = format!("write `{}: nop`", shorten(label.text));
                p.doubtful.insert(label.text);
                return Err(p.complain(problem.at(label.span).help(help)));
            }
            let begin = p.next;
            let kind = p.statement().inspect_err(|_| p.doubtful.extend(label.map(|l| l.text)))?;
            let text = text(&p.tokens[begin..p.next], &kind);
            Ok(Stmt { label, kind, span: p.since(if label.is_some() { begin } else { first }), text })
        })
    }

    fn statement(&mut self) -> Parsed<StmtKind<'s>> {
        let token = self.token();
        if token.kind == RmmKind::Register {
            let register = self.register()?;
            self.expect(":=", "`:=` and the new value")?;
            return Ok(StmtKind::Assign(register, self.sum()?));
        }
        if token.is("{") {
            return Ok(StmtKind::Block(self.braces(false)?.pop().unwrap_or_default()));
        }
        if token.kind != RmmKind::Word {
            return Err(self.unexpected("a statement"));
        }
        if !STATEMENTS.contains(&token.text) && token.text != "goto" {
            return Err(self.no_statement());
        }
        self.bump();
        Ok(match token.text {
            "nop" => StmtKind::Nop,
            "ssfence" => StmtKind::Partial(FenceKinds::SFENCE),
            "llfence" => StmtKind::Partial(FenceKinds { ll: true, ..FenceKinds::NONE }),
            "fence" => StmtKind::Fence,
            "assume" => {
                self.expect(":", "`:` as in `assume: $r = 0`")?;
                StmtKind::Assume(self.condition()?)
            }
            "read" | "syncrd" => self.read()?,
            "write" => self.write(StmtKind::Store)?,
            "syncwr" => self.write(StmtKind::LockedStore)?,
            "slocked" => {
                self.expect("write", "`write`, as in `slocked write: x := 1`")?;
                self.write(StmtKind::Store)?
            }
            "locked" if self.eat("write").is_some() => self.write(StmtKind::LockedStore)?,
            "locked" => StmtKind::Locked(self.braces(true)?),
            "cas" => self.cas()?,
            "either" => StmtKind::Either(self.braces(true)?),
            "goto" => StmtKind::Goto(self.name("a label")?),
            "if" => self.branch()?,
            _ => {
                let condition = self.condition()?;
                self.expect("do", "`do` and what is repeated")?;
                StmtKind::While(condition, Box::new(self.labelled()?))
            }
        })
    }

    fn no_statement(&mut self) -> Reported {
        let token = self.token();
        if token.is_name() && self.follows(":=") {
            let problem = Problem::error(format!("`{}` is no register", shorten(token.text))).at(token.span);
            let help = format!("memory is written by `write: {} := …`", shorten(token.text));
            return self.complain(problem.help(help));
        }
        let words = STATEMENTS.iter().copied().chain(["goto"]);
        let meant = self.problems.nearest(token.text, words);
        let problem = match token.is_name() {
            true => Problem::error(format!("unknown statement `{}`", shorten(token.text))),
            false => Problem::error(format!("expected a statement, found {}", self.found())),
        };
        self.complain(problem.at(token.span).suggest(meant))
    }

    /// Lists of statements in braces, with `or` between them if there may be several.
    fn braces(&mut self, several: bool) -> Parsed<Vec<Vec<Stmt<'s>>>> {
        let open = self.expect("{", "`{`")?;
        let mut lists = vec![self.statements()];
        while several && self.eat("or").is_some() {
            lists.push(self.statements());
        }
        if self.eat("}").is_some() {
            return Ok(lists);
        }
        if self.kind() == RmmKind::Garbage {
            return Err(Reported);
        }
        let line = self.problems.line(open);
        let problem = Problem::error(format!("expected `;` or `}}`, found {}", self.found())).at(self.here());
        Err(self.complain(problem.label(format!("the `{{` on line {line} is still open"))))
    }

    fn branch(&mut self) -> Parsed<StmtKind<'s>> {
        let condition = self.condition()?;
        self.expect("then", "`then` and what is done")?;
        let then = Box::new(self.labelled()?);
        let otherwise = match self.eat("else") {
            Some(_) => Some(Box::new(self.labelled()?)),
            None => None,
        };
        Ok(StmtKind::If(condition, then, otherwise))
    }

    fn register(&mut self) -> Parsed<Name<'s>> {
        if self.kind() != RmmKind::Register {
            return Err(self.unexpected("a register"));
        }
        let token = self.bump();
        Ok(Name { text: token.text, span: token.span })
    }

    fn read(&mut self) -> Parsed<StmtKind<'s>> {
        self.expect(":", "`:` as in `read: $r := x`")?;
        if self.kind() == RmmKind::Register {
            let register = self.register()?;
            self.expect(":=", "`:=` and what is read")?;
            return Ok(StmtKind::Load(register, self.place()?));
        }
        let place = self.place()?;
        if self.at(":=") {
            let problem = Problem::error("`read` does not write memory").at(self.token().span);
            return Err(
                self.complain(problem.help("`read: x = 1` waits for a value; `write: x := 1` writes one"))
            );
        }
        self.expect("=", "`=` and the value to wait for")?;
        Ok(StmtKind::Expect(place, self.sum()?))
    }

    fn write(&mut self, kind: fn(RmmPlace<'s>, super::Term<'s>) -> StmtKind<'s>) -> Parsed<StmtKind<'s>> {
        self.expect(":", "`:` as in `write: x := 1`")?;
        let place = self.place()?;
        self.expect(":=", "`:=` and the value to write")?;
        Ok(kind(place, self.sum()?))
    }

    fn cas(&mut self) -> Parsed<StmtKind<'s>> {
        self.expect("(", "`(` as in `cas(x,0,1)`")?;
        let place = self.place()?;
        self.expect(",", "`,` and the old value")?;
        let old = self.sum()?;
        self.expect(",", "`,` and the new value")?;
        let new = self.sum()?;
        self.expect(")", "`)`")?;
        Ok(StmtKind::Cas(place, old, new))
    }

    fn place(&mut self) -> Parsed<RmmPlace<'s>> {
        let first = self.next;
        let kind = if self.eat("[").is_some() {
            let address = self.sum()?;
            self.expect("]", "`]`, which closes the pointer")?;
            PlaceKind::Pointer(address)
        } else {
            let name = self.name("a memory location")?;
            match self.eat("[") {
                None => PlaceKind::Global(name),
                Some(_) => self.owner(name)?,
            }
        };
        Ok(RmmPlace { kind, span: self.since(first) })
    }

    fn owner(&mut self, name: Name<'s>) -> Parsed<PlaceKind<'s>> {
        let kind = match self.eat("my") {
            Some(_) => PlaceKind::Own(name),
            None => {
                let which = self.sum()?;
                let number = which.expr.constant().ok_or_else(|| {
                    let problem = Problem::error("whose location this is must be a number, or `my`");
                    self.complain(problem.at(which.span))
                })?;
                PlaceKind::Other(name, number)
            }
        };
        self.expect("]", "`]`")?;
        Ok(kind)
    }
}

/// The tokens as somebody would write them, of branches and loops those of the condition.
fn text(tokens: &[RmmToken], kind: &StmtKind) -> String {
    let branches = matches!(kind, StmtKind::If(..) | StmtKind::While(..));
    let end = tokens.iter().position(|t| branches && (t.is("then") || t.is("do"))).unwrap_or(tokens.len());
    let (mut text, tokens) = (String::new(), &tokens[..end]);
    for pair in tokens.windows(2).take(TOKENS_SHOWN) {
        text.push_str(pair[0].text);
        let tight = matches!(pair[0].text, "(" | "[")
            || matches!(pair[1].text, ")" | "]" | "," | ";" | ":")
            || pair[0].kind == RmmKind::Word && pair[1].text == "[" && pair[0].is_name()
            || pair[0].is("cas");
        if !tight {
            text.push(' ');
        }
    }
    match tokens.last() {
        Some(last) if tokens.len() <= TOKENS_SHOWN + 1 => text.push_str(last.text),
        _ => text.push('…'),
    }
    text
}
