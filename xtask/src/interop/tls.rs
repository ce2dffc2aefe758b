//! Unmodified clients that speak TLS by their ORB's own transport, with certificates, and are let
//! in by name; and one without TLS, which is not.
//!
//! What it is not: a case of faults. Servers are plain, as ever: the gateways end TLS.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::cluster::Ground;
use super::domain::{DomainFile, GroupText, Servers, more_ports};
use super::fleet::Fleet;
use super::{Context, Orb, Verdict, load};
use crate::place::Place;
use crate::workspace;

/// omniORB's transport; loaded before the client, it is there.
const OMNIORB_TRANSPORT: &str = "libomnisslTP4.so.2";
const PASSWORD: &str = "interop";

/// What a case of this kind varies.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    pub(super) client: Orb,
    /// The gateways take plain IIOP, too.
    plain: bool,
}

#[derive(Deserialize)]
struct Figures {
    requests: u64,
    acknowledged: u64,
}

impl Setting {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let of = |client| [true, false].map(|plain| Self { client, plain });
        Orb::BOTH.into_iter().flat_map(of)
    }

    pub(super) fn name(self) -> String {
        let only = if self.plain { "" } else { "-only" };
        format!("{}-with-tls{only}", self.client.name())
    }

    /// What is not here.
    fn lacks(self) -> Option<String> {
        let is_there = |name: &&str| workspace::program(name).is_some();
        let programs: &[&str] = match self.client {
            Orb::Omniorb => &["openssl"],
            Orb::Jacorb => &["openssl", "keytool"],
        };
        if let Some(missing) = programs.iter().find(|name| !is_there(name)) {
            return Some(format!("no {missing} here"));
        }
        let folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu"];
        let has = |folder: &&str| Path::new(folder).join(OMNIORB_TRANSPORT).exists();
        let lacks = self.client == Orb::Omniorb && !folders.iter().any(has);
        lacks.then(|| format!("no {OMNIORB_TRANSPORT} here"))
    }
}

pub(super) fn run(context: &Context, setting: Setting) -> Verdict {
    if let Some(reason) = setting.lacks() {
        return Verdict::Skipped(reason);
    }
    match run_in(context, setting) {
        Ok(figures) => Verdict::Passed(figures),
        Err(reason) => Verdict::Failed(reason),
    }
}

fn run_in(context: &Context, setting: Setting) -> Result<String, String> {
    let folder = &context.folder;
    make_certificates(folder, setting.client)?;
    let (tls, plain) = (more_ports()?, setting.plain);
    let more = format!(
        "object_key = \"bank\"\nstate_object = \"bank\"\nclients = [\"teller\"]\n\
         tls = {{ listen = {tls}, certificate = \"gateway.pem\", key = \"gateway.key\", \
         client_ca = \"ca.pem\", plain = {plain} }}\n"
    );
    // Servers run in folders of their own.
    let quorba = std::path::absolute(&context.quorba).map_err(|error| error.to_string())?;
    let quorba = quorba.display().to_string();
    let server = [quorba.as_str(), "servant", "bank", "--port", "{port}"].map(String::from);
    let group = GroupText {
        style: "active",
        name: "bank",
        servers: Servers::Started(server.to_vec()),
        more: &more,
    };
    let domain = DomainFile::write(&context.quorba, folder, &group, &Ground::default())?;
    let fleet = Fleet::start(&context.quorba, folder, "bank", domain)?;
    fleet.wait_whole()?;
    let reference = fleet.reference()?;
    let with_tls = call(context, setting.client, &reference, true)?;
    if with_tls.acknowledged == 0 || with_tls.acknowledged != with_tls.requests {
        let Figures { requests, acknowledged } = with_tls;
        return Err(format!("{acknowledged} of {requests} calls with TLS were answered"));
    }
    let without = call(context, setting.client, &reference, false)?;
    if without.acknowledged != 0 {
        return Err(format!("{} calls without TLS were answered", without.acknowledged));
    }
    fleet.end()?;
    let acknowledged = with_tls.acknowledged;
    Ok(format!("{acknowledged} calls with TLS, none of {} without", without.requests))
}

/// Runs the bank's load client for a while.
fn call(context: &Context, orb: Orb, reference: &str, tls: bool) -> Result<Figures, String> {
    let program = load::program(&context.folder, orb, "client")?;
    let mut command = Place::Here.command(&program);
    command.current_dir(&context.folder);
    command.args(["--ref", reference, "--seconds", "2", "--rate", "50", "--accounts", "4"]);
    match orb {
        Orb::Omniorb if tls => {
            command.env("LD_PRELOAD", OMNIORB_TRANSPORT);
            command.args(["-ORBsslCAFile", "ca.pem", "-ORBsslKeyFile", "teller-both.pem"]);
            command.args(["-ORBsslKeyPassword", PASSWORD, "-ORBclientTransportRule", "* ssl"]);
        }
        Orb::Jacorb if tls => {
            command.env("JAVA_TOOL_OPTIONS", jacorb_options());
        }
        Orb::Omniorb | Orb::Jacorb => {}
    }
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = text.lines().rev().find(|line| line.starts_with('{'));
    let figures = figures.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("the client says nothing of its calls: {}", said.trim())
    })?;
    serde_json::from_str(figures).map_err(|error| format!("{figures}: {error}"))
}

/// Options for TLS that trusts in both ends (0x60).
fn jacorb_options() -> String {
    let factory = |kind: &str| format!("org.jacorb.security.ssl.sun_jsse.{kind}");
    let options = [
        ("jacorb.security.support_ssl", "on".to_owned()),
        ("jacorb.ssl.socket_factory", factory("SSLSocketFactory")),
        ("jacorb.ssl.server_socket_factory", factory("SSLServerSocketFactory")),
        ("jacorb.security.ssl.client.supported_options", "60".to_owned()),
        ("jacorb.security.ssl.client.required_options", "60".to_owned()),
        ("jacorb.security.keystore", "teller.jks".to_owned()),
        ("jacorb.security.keystore_password", PASSWORD.to_owned()),
        ("jacorb.security.jsse.trustees_from_ks", "on".to_owned()),
    ];
    options.map(|(key, value)| format!("-D{key}={value}")).join(" ")
}

/// An authority, and what it has signed for the gateways and for the client.
fn make_certificates(folder: &Path, orb: Orb) -> Result<(), String> {
    let openssl = |arguments: &str| tool(folder, "openssl", arguments);
    openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 30 -subj /CN=ca")?;
    for (name, alternative) in [("gateway", "IP:127.0.0.1"), ("teller", "DNS:teller.plant")] {
        let extensions = format!("basicConstraints=CA:FALSE\nsubjectAltName={alternative}\n");
        write(&folder.join("extensions"), &extensions)?;
        openssl(&format!(
            "req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
        ))?;
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 \
             -out {name}.pem -extfile extensions"
        ))?;
    }
    match orb {
        Orb::Omniorb => {
            let read = |name: &str| std::fs::read_to_string(folder.join(name));
            let both = read("teller.key").and_then(|key| Ok(key + &read("teller.pem")?));
            let both = both.map_err(|error| format!("the client's certificate: {error}"))?;
            write(&folder.join("teller-both.pem"), &both)
        }
        Orb::Jacorb => {
            openssl(&format!(
                "pkcs12 -export -inkey teller.key -in teller.pem -certfile ca.pem -name teller \
                 -passout pass:{PASSWORD} -out teller.p12"
            ))?;
            let keytool = |arguments: &str| tool(folder, "keytool", arguments);
            keytool(&format!(
                "-importkeystore -srckeystore teller.p12 -srcstoretype PKCS12 -srcstorepass \
                 {PASSWORD} -destkeystore teller.jks -deststoretype JKS -deststorepass {PASSWORD} \
                 -noprompt"
            ))?;
            keytool(&format!(
                "-importcert -alias ca -file ca.pem -keystore teller.jks -storepass {PASSWORD} \
                 -noprompt"
            ))
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn tool(folder: &Path, name: &str, arguments: &str) -> Result<(), String> {
    let output = Command::new(name).args(arguments.split_whitespace()).current_dir(folder).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name} {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
