//! Who may call what: `state_operations`, `clients`, and TLS at the gateways (`tls`).
//!
//! What it is not: a reader of certificates; whether they can be used is seen where a node starts.

use std::net::IpAddr;
use std::path::PathBuf;

use quorba_base::Network;
use toml::de::DeValue;

use super::readonly::as_operations;
use crate::codes::Code;
use crate::domain::{ClientRule, Tls};
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::walk::{At, LIST_VALUES_MAX, Section, Span, Value, shortened};

/// What moves the state of a whole replica (FT-CORBA §23.5).
const STATE_OPERATIONS: [&str; 4] = ["get_state", "set_state", "get_update", "set_update"];

/// Of those, the ones that clients may call.
pub(super) fn read_state_operations(section: &Section<'_>) -> Vec<String> {
    let Some(operations) = section.texts("state_operations") else { return Vec::new() };
    let mut names = Vec::new();
    for at in operations.value {
        if STATE_OPERATIONS.contains(&at.value) {
            names.push(at.value.to_owned());
            continue;
        }
        let message = format!("`state_operations` cannot have {:?}", shortened(at.value));
        let meant = nearest(at.value, STATE_OPERATIONS);
        let meant = meant.map(|word| format!("did you mean \"{word}\"?"));
        let problem = Problem::at(Code::UnknownValue, at.span, message);
        let problem = problem.label(format!("possible: {}", STATE_OPERATIONS.join(", ")));
        section.problems.add(problem.maybe_help(meant));
    }
    names.sort();
    names.dedup();
    names
}

/// TLS, and where its port stands in the file.
pub(super) fn read_tls(group: &Section<'_>) -> Option<(Tls, Span)> {
    let value = group.value("tls")?;
    let DeValue::Table(table) = value.get_ref() else {
        group.wrong_type("tls", "a table { listen = ..., certificate = \"...\", ... }", value);
        return None;
    };
    let title = format!("`tls` of {}", group.title);
    let section = Section::new(title, value.span(), Some(table), group.problems);
    section.require("listen", "the port for TLS on every node, such as listen = 5001");
    let hint = "the file with the gateways' certificate: certificate = \"gateway.pem\"";
    let certificate = section.required_text("certificate", hint);
    let hint = "the file with that certificate's key: key = \"gateway.key\"";
    let key = section.required_text("key", hint);
    let listen = section.port("listen");
    let path = |at: At<&str>| PathBuf::from(at.value);
    let client_ca = section.text("client_ca").map(path);
    let certificates = [("required", true), ("optional", false)];
    let required = section.word_or("client_certificates", &certificates, &[], true);
    let plain = section.boolean_or("plain", true);
    if client_ca.is_none()
        && let Some(idle) = section.value("client_certificates")
    {
        let message = "`client_certificates` has no effect without `client_ca`";
        section.problems.add(Problem::at(Code::SilentSetting, idle.span(), message));
    }
    section.finish();
    let listen = listen?;
    let tls = Tls {
        listen: listen.value,
        certificate: path(certificate?),
        key: path(key?),
        client_certificates_required: required && client_ca.is_some(),
        client_ca,
        plain,
    };
    Some((tls, listen.span))
}

/// Who may call. `tls`: what the group's clients can show.
pub(super) fn read_clients(group: &Section<'_>, tls: Option<&Tls>) -> Option<Vec<ClientRule>> {
    let value = group.value("clients")?;
    let DeValue::Array(list) = value.get_ref() else {
        group.wrong_type("clients", "a list of networks, names and tables", value);
        return None;
    };
    if list.len() > LIST_VALUES_MAX {
        let message = format!("`clients` has more than {LIST_VALUES_MAX} values");
        group.problems.add(Problem::at(Code::TooMany, value.span(), message));
        return None;
    }
    let rules: Vec<ClientRule> = list.iter().filter_map(|one| read_rule(group, one)).collect();
    let shows = tls.is_some_and(|tls| tls.client_ca.is_some());
    if !shows && rules.iter().any(|rule| !rule.certificates.is_empty()) {
        let message = "`clients` names certificates, and no client can show one";
        let help = "give `tls` a `client_ca`, the certificate of who signs those of clients; a \
                    network is written 10.0.0.0/8";
        group.problems.add(Problem::at(Code::Conflict, value.span(), message).help(help));
    }
    Some(rules)
}

fn read_rule(group: &Section<'_>, value: &Value<'_>) -> Option<ClientRule> {
    let DeValue::Table(table) = value.get_ref() else {
        let text = group.as_text("clients", value)?;
        let mut rule = ClientRule::default();
        if text.value.contains('/') || text.value.parse::<IpAddr>().is_ok() {
            rule.networks.push(network(group, &text)?);
        } else {
            rule.certificates.push(text.value.to_owned());
        }
        return Some(rule);
    };
    let title = format!("`clients` of {}", group.title);
    let section = Section::new(title, value.span(), Some(table), group.problems);
    let networks = section.texts("networks").map(|texts| texts.value).unwrap_or_default();
    let certificates = section.texts("certificates").map(|texts| texts.value).unwrap_or_default();
    let operations = section.texts("operations").map(|texts| as_operations(&section, texts));
    if networks.is_empty() && certificates.is_empty() {
        let message = "an entry of `clients` names nobody";
        let problem = Problem::at(Code::MissingKey, value.span(), message);
        let help = "networks = [\"10.0.0.0/8\"], certificates = [\"name\"], or both; everybody: \
                    networks = [\"0.0.0.0/0\", \"::/0\"]";
        section.problems.add(problem.help(help));
    }
    let rule = ClientRule {
        networks: networks.iter().filter_map(|text| network(&section, text)).collect(),
        certificates: certificates.into_iter().map(|text| text.value.to_owned()).collect(),
        operations,
    };
    let is_whole = rule.networks.len() == networks.len();
    section.finish();
    is_whole.then_some(rule)
}

fn network(section: &Section<'_>, text: &At<&str>) -> Option<Network> {
    let (address, bits) = match text.value.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text.value, None),
    };
    let address: Option<IpAddr> = address.parse().ok();
    let most = address.map_or(0, |address| if address.is_ipv4() { 32 } else { 128 });
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most));
    if let (Some(address), Some(prefix_bits)) = (address, bits) {
        return Some(Network { address, prefix_bits });
    }
    let message = format!("{:?} is no network", shortened(text.value));
    let problem = Problem::at(Code::UnknownValue, text.span.clone(), message);
    section.problems.add(problem.help("an address, or one and a length: 10.0.0.0/8, fd00::/8"));
    None
}
