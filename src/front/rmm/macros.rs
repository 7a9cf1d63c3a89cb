//! What do the macro calls stand for? Tokens in, tokens out, before anything has a grammar.
//!
//! A call is replaced by the macro's body with the arguments put in for the parameters, without parentheses
//! around them, and the result may hold calls again. A macro must stand above its calls and may not lead back
//! to itself; a call inside an argument of the same macro is no such cycle. Every token remembers the call
//! in the text that brought it, for messages. Invariant: the work is bounded, however calls multiply.

use super::lex::{RmmKind, RmmToken};
use crate::front::diagnostics::{Problem, Problems, Reported, Span};
use std::collections::HashMap;
use std::rc::Rc;

/// Tokens written while expanding, at all levels.
const MAX_TOKENS: usize = 2_000_000;
const MAX_NESTING: usize = 100;

struct Macro<'s> {
    parameters: Vec<&'s str>,
    body: Vec<RmmToken<'s>>,
    line: u32,
}

struct Expander<'s, 'p> {
    macros: HashMap<&'s str, Rc<Macro<'s>>>,
    /// The macros that are being expanded, the innermost last.
    active: Vec<&'s str>,
    /// The call in the text, not inside a macro, that is being expanded.
    call: Option<Span>,
    written: usize,
    depth: usize,
    problems: &'p mut Problems<'s>,
}

type Expanded<T> = Result<T, Reported>;

/// The text without macros; an error only if there is no sense in going on.
pub(crate) fn expand<'s>(
    tokens: Vec<RmmToken<'s>>,
    problems: &mut Problems<'s>,
) -> Expanded<Vec<RmmToken<'s>>> {
    let mut expander =
        Expander { macros: HashMap::new(), active: Vec::new(), call: None, written: 0, depth: 0, problems };
    expander.text(&tokens)
}

impl<'s> Expander<'s, '_> {
    /// Definitions are taken up, calls replaced, and everything else stays.
    fn text(&mut self, tokens: &[RmmToken<'s>]) -> Expanded<Vec<RmmToken<'s>>> {
        let (mut out, mut at) = (Vec::new(), 0);
        while at < tokens.len() {
            let token = tokens[at];
            match (token.kind, token.text) {
                (RmmKind::Word, "macro") => at += self.definition(&tokens[at..]),
                (RmmKind::Word, "endmacro") => {
                    self.problems.report(Problem::error("`endmacro` without a `macro`").at(token.span));
                    at += 1;
                }
                _ => at += self.token(&tokens[at..], &mut out)?,
            }
        }
        Ok(out)
    }

    /// A part of the text, inside a call.
    fn part(&mut self, tokens: &[RmmToken<'s>]) -> Expanded<Vec<RmmToken<'s>>> {
        let (mut out, mut at) = (Vec::new(), 0);
        while at < tokens.len() {
            at += self.token(&tokens[at..], &mut out)?;
        }
        Ok(out)
    }

    /// Writes what the first token stands for, and says how many were used up.
    fn token(&mut self, tokens: &[RmmToken<'s>], out: &mut Vec<RmmToken<'s>>) -> Expanded<usize> {
        let token = tokens[0];
        self.problems.spend(1)?;
        self.written += 1;
        if self.written > MAX_TOKENS {
            let problem = Problem::error(format!("the macros unfold to more than {MAX_TOKENS} tokens"));
            return Err(self.problems.report(problem.at(self.call.unwrap_or(token.span))));
        }
        let found = match token.kind {
            RmmKind::Word => self.macros.get(token.text).cloned(),
            _ => None,
        };
        let Some(found) = found else {
            out.push(token);
            return Ok(1);
        };
        let Some(arguments) = self.arguments(tokens, &found)? else {
            out.push(token);
            return Ok(1);
        };
        let used = 2 + arguments.iter().map(|a| a.len() + 1).sum::<usize>().max(1);
        self.call(token, &found, &arguments, out)?;
        Ok(used)
    }

    fn call(
        &mut self,
        name: RmmToken<'s>,
        found: &Macro<'s>,
        arguments: &[&[RmmToken<'s>]],
        out: &mut Vec<RmmToken<'s>>,
    ) -> Expanded<()> {
        if self.active.contains(&name.text) {
            let problem = Problem::error(format!("macro `{}` leads back to itself", name.text)).at(name.span);
            return Err(self.problems.report(problem));
        }
        if self.depth == MAX_NESTING {
            let problem =
                Problem::error("these calls are nested too deeply").at(self.call.unwrap_or(name.span));
            return Err(self.problems.report(problem));
        }
        self.depth += 1;
        let outermost = self.call.is_none();
        let call = *self.call.get_or_insert(name.span);
        let arguments: Vec<Vec<RmmToken>> =
            arguments.iter().map(|a| self.part(a)).collect::<Expanded<_>>()?;
        let mut body = Vec::new();
        for token in &found.body {
            match found.parameters.iter().position(|p| token.kind == RmmKind::Word && *p == token.text) {
                Some(i) => body.extend_from_slice(&arguments[i]),
                None => body.push(RmmToken { call: Some(call), ..*token }),
            }
        }
        self.active.push(name.text);
        let expanded = self.part(&body);
        self.active.pop();
        self.depth -= 1;
        if outermost {
            self.call = None;
        }
        out.extend(expanded?);
        Ok(())
    }

    /// The arguments of the call that begins here. `None` if it is none, which has been reported.
    fn arguments<'t>(
        &mut self,
        tokens: &'t [RmmToken<'s>],
        found: &Macro<'s>,
    ) -> Expanded<Option<Vec<&'t [RmmToken<'s>]>>> {
        let (name, expected) = (tokens[0], found.parameters.len());
        if !tokens.get(1).is_some_and(|t| t.is("(")) {
            let problem =
                Problem::error(format!("macro `{}` is called without parentheses", name.text)).at(name.span);
            let help = format!("it was defined on line {}; write `{}(…)`", found.line, name.text);
            self.problems.report(problem.help(help));
            return Ok(None);
        }
        let (mut arguments, mut depth, mut start) = (Vec::new(), 0, 2);
        for (i, token) in tokens.iter().enumerate().skip(2) {
            match token.text {
                "(" => depth += 1,
                ")" if depth > 0 => depth -= 1,
                "," | ")" if depth == 0 => {
                    arguments.push(&tokens[start..i]);
                    start = i + 1;
                    if token.text == ")" {
                        return self.counted(name, arguments, expected);
                    }
                }
                _ => {}
            }
        }
        let problem = Problem::error(format!("the call of macro `{}` has no `)`", name.text)).at(name.span);
        Err(self.problems.report(problem))
    }

    fn counted<'t>(
        &mut self,
        name: RmmToken<'s>,
        mut arguments: Vec<&'t [RmmToken<'s>]>,
        expected: usize,
    ) -> Expanded<Option<Vec<&'t [RmmToken<'s>]>>> {
        if expected == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if arguments.len() == expected && arguments.iter().all(|a| !a.is_empty()) {
            return Ok(Some(arguments));
        }
        let given = arguments.iter().filter(|a| !a.is_empty()).count();
        let message = format!("macro `{}` takes {expected} arguments, and is given {given}", name.text);
        Err(self.problems.report(Problem::error(message).at(name.span)))
    }

    /// Takes up a definition, and says how many tokens it has. A bad one is skipped as a whole.
    fn definition(&mut self, tokens: &[RmmToken<'s>]) -> usize {
        let Some(end) = tokens.iter().position(|t| t.is("endmacro")) else {
            let problem = Problem::error("this macro has no `endmacro`").at(tokens[0].span);
            self.problems.report(problem);
            return tokens.len() - 1;
        };
        if let Err(problem) = self.define(&tokens[..end]) {
            self.problems.report(problem);
        }
        end + 1
    }

    fn define(&mut self, tokens: &[RmmToken<'s>]) -> Result<(), Problem> {
        let expected = |what: &str, at: usize| {
            let place = tokens.get(at).or(tokens.last()).map_or(tokens[0].span, |t| t.span);
            Problem::error(format!("expected {what}")).at(place).help("as in `macro add(a,b) a + b endmacro`")
        };
        let name = tokens.get(1).filter(|t| t.is_name()).ok_or_else(|| expected("the name of a macro", 1))?;
        tokens.get(2).filter(|t| t.is("(")).ok_or_else(|| expected("`(` and the parameters", 2))?;
        let (mut parameters, mut at) = (Vec::new(), 3);
        while !tokens.get(at).is_some_and(|t| t.is(")")) {
            if !parameters.is_empty() {
                tokens.get(at).filter(|t| t.is(",")).ok_or_else(|| expected("`,` or `)`", at))?;
                at += 1;
            }
            let parameter = tokens.get(at).filter(|t| t.is_name());
            let parameter = parameter.ok_or_else(|| expected("the name of a parameter", at))?;
            if parameters.contains(&parameter.text) {
                let message = format!("parameter `{}` stands twice", parameter.text);
                return Err(Problem::error(message).at(parameter.span));
            }
            parameters.push(parameter.text);
            at += 1;
        }
        let body = tokens[at + 1..].to_vec();
        if let Some(inner) = body.iter().find(|t| t.is("macro")) {
            let problem = Problem::error("a macro cannot be defined inside another one").at(inner.span);
            return Err(problem.help("is the `endmacro` of the outer one missing?"));
        }
        let line = self.problems.line(name.span);
        if let Some(first) = self.macros.get(name.text) {
            let problem = Problem::error(format!("macro `{}` is defined twice", name.text)).at(name.span);
            return Err(problem.label(format!("first on line {}", first.line)));
        }
        self.macros.insert(name.text, Rc::new(Macro { parameters, body, line }));
        Ok(())
    }
}
