//! Which processes are there? A hosts file has a line `host:port` for each, in the order of their numbers, as timely
//! has it; and a line `token WORD`, which keeps strangers out. Empty lines and what follows a `#` do not count.

use std::collections::HashMap;
use std::net::IpAddr;
use thiserror::Error;

/// Processes have 16 bits in what they send.
const MOST: usize = 256;
/// A token that is shorter can be guessed.
const SHORTEST_TOKEN: usize = 8;

/// The processes of a search, and the word by which they know each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    pub addresses: Vec<String>,
    pub token: String,
}

/// What is wrong with a hosts file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}:{column}: {what}")]
pub struct Mistake {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

impl Hosts {
    pub fn read(text: &str) -> Result<Hosts, Mistake> {
        let mut hosts = Hosts { addresses: vec![], token: String::new() };
        let mut lines: HashMap<String, usize> = HashMap::new();
        for (k, whole) in text.lines().enumerate() {
            let line = whole.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let wrong = |word: &str, what: String| {
                let before = whole.find(word).map_or(0, |at| whole[..at].chars().count());
                Mistake { line: k + 1, column: before + 1, what }
            };
            match words[..] {
                [] => {}
                ["token", token] if !hosts.token.is_empty() => {
                    return Err(wrong(token, "there is a token already".to_string()));
                }
                ["token", token] if token.len() < SHORTEST_TOKEN => {
                    let what = format!(
                        "a token needs {SHORTEST_TOKEN} letters or more, so that it cannot be guessed"
                    );
                    return Err(wrong(token, what));
                }
                ["token", token] => hosts.token = token.to_string(),
                [address] => {
                    is_address(address).map_err(|what| wrong(address, what))?;
                    if let Some(first) = lines.insert(address.to_string(), k + 1) {
                        return Err(wrong(address, format!("`{address}` stands in line {first} already")));
                    }
                    hosts.addresses.push(address.to_string());
                }
                [_, second, ..] => {
                    let what = "expected `host:port`, or `token` and a word, and nothing else in the line";
                    return Err(wrong(second, what.to_string()));
                }
            }
        }
        hosts.check(text.lines().count())
    }

    fn check(self, last: usize) -> Result<Hosts, Mistake> {
        let wrong = |what: String| Err(Mistake { line: last.max(1), column: 1, what });
        match self.addresses.len() {
            0 => return wrong("there is no line `host:port`".to_string()),
            n if n > MOST => return wrong(format!("there are {n} processes, and {MOST} are the most")),
            _ => {}
        }
        let is_near = |address: &String| match host_of(address) {
            "localhost" => true,
            host => host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        };
        if self.token.is_empty() && !self.addresses.iter().all(is_near) {
            let what = "a line `token WORD` is missing, which keeps strangers out; only without other machines can it \
                        be left out";
            return wrong(what.to_string());
        }
        Ok(self)
    }

    /// What a process is called in messages.
    pub(super) fn names(&self) -> Vec<String> {
        self.addresses.iter().enumerate().map(|(k, address)| format!("process {k} ({address})")).collect()
    }
}

fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn is_address(word: &str) -> Result<(), String> {
    let (host, port) =
        word.rsplit_once(':').ok_or_else(|| format!("`{word}` has no port; expected `host:port`"))?;
    if host.is_empty() || host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(format!(
            "`{host}` is no host; expected a name, an address, or `[…]` around one with colons"
        ));
    }
    match port.parse::<u16>() {
        Ok(1..) => Ok(()),
        _ => Err(format!("`{port}` is no port; expected a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Hosts::read(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_line_is_a_process() {
        let read = Hosts::read("# two\nlocalhost:2101\n\n[::1]:2102 # the second\ntoken open-sesame\n");
        let addresses = vec!["localhost:2101".to_string(), "[::1]:2102".to_string()];
        assert_eq!(read, Ok(Hosts { addresses, token: "open-sesame".to_string() }));
    }

    #[test]
    fn strangers_are_kept_out_where_there_are_other_machines() {
        assert!(Hosts::read("127.0.0.1:1\nlocalhost:2").is_ok());
        assert!(wrong("127.0.0.1:1\nelsewhere:2").starts_with("2:1: a line `token WORD` is missing"));
        assert!(Hosts::read("127.0.0.1:1\nelsewhere:2\ntoken 12345678").is_ok());
    }

    #[test]
    fn mistakes_have_their_place() {
        assert!(wrong("").starts_with("1:1: there is no line"));
        assert!(wrong("a:1\n  b").starts_with("2:3: `b` has no port"));
        assert!(wrong("a:70000").starts_with("1:1: `70000` is no port"));
        assert!(wrong(":1").starts_with("1:1: `` is no host"));
        assert!(wrong("::1:7").starts_with("1:1: `::1` is no host"));
        assert!(wrong("a:1 b:2").starts_with("1:5: expected `host:port`"));
        assert!(wrong("a:1\na:1").starts_with("2:1: `a:1` stands in line 1 already"));
        assert!(wrong("token short").starts_with("1:7: a token needs"));
        assert!(wrong("token 12345678\ntoken 12345678").starts_with("2:7: there is a token already"));
    }
}
