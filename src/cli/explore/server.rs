//! A web server for one user of this machine. It listens on loopback, answers nobody who does not know the token in
//! the address, or whose browser came from elsewhere (`Host`, `Origin`), opens no file, writes nothing, and reads no
//! request that is large or slow.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a request's head, and of its body.
const HEAD: usize = 16 << 10;
const BODY: usize = 1 << 20;
/// Requests at the same time.
const MOST: usize = 16;
/// A request has to be there by then.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Server {
    listener: TcpListener,
    port: u16,
    token: String,
}

/// What is sent back.
pub(super) struct HttpReply {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl HttpReply {
    pub(super) fn html(body: String) -> HttpReply {
        HttpReply { status: "200 OK", kind: "text/html; charset=utf-8", body }
    }

    pub(super) fn json(body: &Value) -> HttpReply {
        HttpReply { status: "200 OK", kind: "application/json", body: body.to_string() }
    }

    pub(super) fn not_found() -> HttpReply {
        HttpReply::refusal("404 Not Found")
    }

    fn refusal(status: &'static str) -> HttpReply {
        HttpReply { status, kind: "text/plain; charset=utf-8", body: format!("{status}\n") }
    }
}

impl Server {
    /// On the port, or on any that is free.
    pub(super) fn new(port: Option<u16>) -> Result<Server, String> {
        let port = port.unwrap_or(0);
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|e| format!("port {port}: {e}"))?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let mut secret = [0u8; 16];
        getrandom::fill(&mut secret).map_err(|e| format!("no random token could be made: {e}"))?;
        let token = secret.iter().map(|b| format!("{b:02x}")).collect();
        Ok(Server { listener, port, token })
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Answers until the process ends. The handler gets what stands behind the token, and the body.
    pub(super) fn serve(&self, handler: impl Fn(&str, &[u8]) -> HttpReply + Sync) {
        let running = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for stream in self.listener.incoming().flatten() {
                if running.fetch_add(1, Ordering::AcqRel) >= MOST {
                    running.fetch_sub(1, Ordering::AcqRel);
                    turn_away(&stream);
                    continue;
                }
                let (handler, running) = (&handler, &running);
                scope.spawn(move || {
                    let reply = self.reply(&stream, handler);
                    send(&stream, &reply);
                    running.fetch_sub(1, Ordering::AcqRel);
                });
            }
        });
    }

    fn reply(&self, stream: &TcpStream, handler: &impl Fn(&str, &[u8]) -> HttpReply) -> HttpReply {
        let request = match read(stream) {
            Ok(request) => request,
            Err(status) => return HttpReply::refusal(status),
        };
        let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        if !request.header("host").is_some_and(|host| hosts.iter().any(|h| h == host)) {
            return HttpReply::refusal("403 Forbidden");
        }
        let from_here = |origin: &str| hosts.iter().any(|h| origin.strip_prefix("http://") == Some(h));
        if request.header("origin").is_some_and(|origin| !from_here(origin)) {
            return HttpReply::refusal("403 Forbidden");
        }
        let Some((token, rest)) = request.path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
            return HttpReply::refusal("403 Forbidden");
        };
        if !same(token, &self.token) {
            return HttpReply::refusal("403 Forbidden");
        }
        match (&request.method[..], rest) {
            ("GET", "") => handler("", &[]),
            ("POST", rest) if !rest.is_empty() => {
                // A page from elsewhere cannot send this without being asked first.
                match request.header("content-type") {
                    Some("application/json") => handler(rest, &request.body),
                    _ => HttpReply::refusal("415 Unsupported Media Type"),
                }
            }
            ("GET", _) => HttpReply::not_found(),
            _ => HttpReply::refusal("405 Method Not Allowed"),
        }
    }
}

/// Without telling by the time it takes how much of it is right.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |wrong, (x, y)| wrong | (x ^ y)) == 0
}

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// The value of a header that comes once.
    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(known, _)| known == name);
        match (all.next(), all.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }
}

fn read(mut stream: &TcpStream) -> Result<Request, &'static str> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut more = |bytes: &mut Vec<u8>| -> Result<(), &'static str> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("408 Request Timeout");
        }
        stream.set_read_timeout(Some(left)).map_err(|_| "400 Bad Request")?;
        let mut chunk = [0; 8 << 10];
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => Err("400 Bad Request"),
            Ok(n) => {
                bytes.extend_from_slice(&chunk[..n]);
                Ok(())
            }
        }
    };
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > HEAD {
            return Err("431 Request Header Fields Too Large");
        }
        more(&mut bytes)?;
    };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "400 Bad Request")?.to_string();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (first.next(), first.next(), first.next(), first.next())
    else {
        return Err("400 Bad Request");
    };
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_string()))
    };
    let headers: Vec<(String, String)> = lines.map(header).collect::<Option<_>>().ok_or("400 Bad Request")?;
    let (method, path) = (method.to_string(), path.to_string());
    let mut request = Request { method, path, headers, body: vec![] };
    if request.header("transfer-encoding").is_some() {
        return Err("411 Length Required");
    }
    let length =
        request.header("content-length").map_or(Ok(0), str::parse::<usize>).map_err(|_| "400 Bad Request")?;
    if length > BODY {
        return Err("413 Content Too Large");
    }
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        more(&mut body)?;
    }
    body.truncate(length);
    request.body = body;
    Ok(request)
}

/// Says that there are too many, and waits next to nothing: meanwhile nobody else is heard.
fn turn_away(mut stream: &TcpStream) {
    let brief = Duration::from_millis(20);
    // An answer to what was not read may get lost.
    let _ = stream.set_read_timeout(Some(brief));
    let _ = stream.read(&mut [0; HEAD]);
    write(stream, &HttpReply::refusal("503 Service Unavailable"), brief);
}

fn write(mut stream: &TcpStream, reply: &HttpReply, patience: Duration) {
    let HttpReply { status, kind, body } = reply;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\r\n",
        body.len()
    );
    // A reader that has gone away is no error of ours.
    let _ = stream.set_write_timeout(Some(patience));
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn send(mut stream: &TcpStream, reply: &HttpReply) {
    write(stream, reply, PATIENCE);
    // What was not read of a request that is refused would take the answer away with it: a little of it is read still.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let mut rest = [0; 8 << 10];
    for _ in 0..8 {
        if !matches!(stream.read(&mut rest), Ok(1..)) {
            break;
        }
    }
}
