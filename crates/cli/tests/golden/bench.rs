//! A folder with a domain in it, in which commands are run and transcribed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use quorba_admin::status::Status;
use tempfile::TempDir;

/// A folder in which commands are run.
pub(crate) struct Bench {
    folder: TempDir,
    /// What differs between runs, and what stands for it in a transcript.
    hidden: Vec<(String, String)>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let hidden = vec![(folder.path().display().to_string(), "[FOLDER]".to_owned())];
        Self { folder, hidden }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("made");
        fs::write(&path, text).expect("written");
        self
    }

    /// A domain file with a good key beside it.
    pub(crate) fn domain(&self, text: &str) -> &Self {
        self.write("quorba.toml", text);
        self.write("domain.key", &format!("{}\n", "5a".repeat(32)));
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.path("domain.key"), mode).expect("allowed");
        self
    }

    /// Lets `[name]` stand for `text` in transcripts.
    pub(crate) fn hide(&mut self, text: impl ToString, name: &str) {
        self.hidden.push((text.to_string(), format!("[{name}]")));
    }

    /// Runs `quorba` with `arguments`; the command, both streams and the exit code as text.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.run_with_input(arguments, "")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> String {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quorba"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("QUORBA_CONFIG")
            .env_remove("CLICOLOR_FORCE")
            .env("COLUMNS", "100")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("quorba starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).expect("it reads, or the pipe holds it");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let stdout = String::from_utf8(output.stdout).expect("text");
        let stderr = String::from_utf8(output.stderr).expect("text");
        let mut transcript = format!("$ quorba {}\n{stdout}", arguments.join(" "));
        if !stderr.is_empty() {
            transcript.push_str(&format!("--- stderr\n{stderr}"));
        }
        match output.status.code() {
            Some(code) => transcript.push_str(&format!("--- exit {code}\n")),
            None => transcript.push_str(&format!("--- {}\n", output.status)),
        }
        for (text, name) in &self.hidden {
            transcript = transcript.replace(text, name);
        }
        transcript
    }

    /// Lets `status` be answered on a free port to whoever shows the token that is written to
    /// `state_dir`. The thread ends with the test.
    pub(crate) fn answer(&mut self, name: &str, state_dir: &str, status: Status) -> SocketAddr {
        let body = serde_json::to_string(&status).expect("a status is JSON");
        self.answer_raw(name, state_dir, "200 OK", &body)
    }

    pub(crate) fn answer_raw(
        &mut self,
        name: &str,
        state_dir: &str,
        code: &str,
        body: &str,
    ) -> SocketAddr {
        let token = format!("token-of-{name}");
        self.write(&format!("{state_dir}/admin.token"), &format!("{token}\n"));
        let good = format!(
            "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        self.hide(address, &format!("ADMIN OF {name}"));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &token, &good);
            }
        });
        address
    }
}

fn serve(stream: TcpStream, token: &str, good: &str) {
    let mut lines = BufReader::new(&stream).lines();
    let mut admitted = false;
    let request = lines.next();
    let asked = matches!(&request, Some(Ok(line)) if line == "GET /v1/status HTTP/1.1");
    for line in lines.by_ref().map_while(Result::ok) {
        let (name, value) = line.split_once(": ").unwrap_or_default();
        admitted |=
            name.eq_ignore_ascii_case("authorization") && value == format!("Bearer {token}");
        if line.is_empty() {
            break;
        }
    }
    let refused = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    let answer = if asked && admitted { good } else { refused };
    // A client that has gone away needs no answer.
    let _ = (&stream).write_all(answer.as_bytes());
}

/// A port on which nothing listens, and that no server of another test is given.
pub(crate) fn silent_port() -> u16 {
    quorba_net::free_ports(1).expect("a free port")[0]
}

/// Whether a file's permission bits are `mode`.
pub(crate) fn has_mode(path: &Path, mode: u32) -> bool {
    let metadata = fs::metadata(path).expect("it is there");
    metadata.permissions().mode() & 0o777 == mode
}
