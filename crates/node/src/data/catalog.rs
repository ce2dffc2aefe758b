//! What operators ask of the groups that the domain has, and what becomes of it here.
//!
//! What it is not: the ordered table, which is the replica's. Invariants: each is answered once; a
//! definition is ordered only when all that it says was found to be right beside the others.

use super::DataPlane;
use crate::NodeError;
use crate::admin::{CatalogAsker, DefineAsker, Refusal};
use crate::definitions::Read;
use crate::reread::Ask;
use bytes::Bytes;
use quorba_admin::{CatalogGroup, Defined};
use quorba_base::{FNV_OFFSET, Position, fnv1a};
use quorba_config::{KnownGroups, check_delete, group_differences, read_definition};
use quorba_engine::replica::{
    CatalogChange, CatalogChanged, CatalogRecord, CatalogRefused, Definition, DefinitionNews,
    GroupId, LogOutput, LogRecord,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;

/// So many groups are named in a warning.
const NAMED_MAX: usize = 5;

/// Who waits for changes of the catalog.
#[derive(Default)]
pub(super) struct Defines {
    last: u64,
    open: BTreeMap<u64, DefineAsker>,
    /// Of those that there are; made when it is asked for first, and again after each change.
    known: Option<KnownGroups>,
    /// What the domain file says of groups, if it was read again.
    file: Option<Vec<quorba_config::Definition>>,
    /// In what the domain file says something else than this catalog.
    differs: Option<(Position, Option<String>)>,
}

impl Defines {
    fn open(&mut self, asker: DefineAsker) -> u64 {
        self.open.retain(|_, asker| !asker.is_closed());
        self.last += 1;
        self.open.insert(self.last, asker);
        self.last
    }

    pub(super) fn close(&mut self, id: u64, result: Result<CatalogChanged, CatalogRefused>) {
        let Some(asker) = self.open.remove(&id) else { return };
        let defined = result.map(|CatalogChanged { id, is_repeated }| Defined {
            id: id_text(id),
            existed: is_repeated,
        });
        // Whoever asked may have given up.
        let _ = asker.send(defined.map_err(refusal));
    }
}

fn refusal(refused: CatalogRefused) -> Refusal {
    Refusal { text: refused.to_string(), is_passing: refused.may_be_repeated() }
}

/// The name of the operation by which nodes bring the domain to what their files say: the same on
/// all, if they do the same to the same catalog.
fn file_operation(version: Option<Position>, change: &quorba_admin::CatalogChange) -> String {
    let text = match change {
        quorba_admin::CatalogChange::Create(definition)
        | quorba_admin::CatalogChange::Change(definition) => &*definition.text,
        quorba_admin::CatalogChange::Delete(_) => "",
    };
    let version = version.map_or_else(String::new, |at| at.to_string());
    let parts = [&version, change.name(), text].map(str::as_bytes).join(&0);
    let sum = fnv1a(FNV_OFFSET, parts);
    format!("file-{sum:016x}")
}

/// As people and other programs see an id.
pub(super) fn id_text(id: GroupId) -> String {
    format!("{:016x}", id.0)
}

/// A definition as the domain file has it.
fn as_in_file(definition: &Definition) -> quorba_config::Definition {
    quorba_config::Definition {
        name: definition.name.to_string(),
        text: String::from_utf8_lossy(&definition.text).into_owned(),
    }
}

fn as_ordered(definition: quorba_config::Definition) -> Definition {
    Definition { name: definition.name.into(), text: definition.text.into_bytes().into() }
}

/// A definition as a file could say it: without what a service has written into it; nothing if the
/// replication manager has made the group, which stands in no file.
fn as_a_file_says(definition: &Definition) -> Option<Cow<'_, [u8]>> {
    let has = |key| core::str::from_utf8(&definition.text).is_ok_and(|text| text.contains(key));
    if !has("ft_group") && !has("note") {
        return Some(Cow::Borrowed(&definition.text));
    }
    let said = as_in_file(definition);
    (!said.is_of_manager()).then(|| Cow::Owned(said.without_note().text.into_bytes()))
}

impl DataPlane {
    /// An operator wants to know all groups.
    pub(super) fn catalog(&self, asker: CatalogAsker) {
        let catalog = self.engine.catalog();
        let group = |(id, definition): (GroupId, &Definition)| {
            let quorba_config::Definition { name, text } = as_in_file(definition);
            let counted = catalog.reference_version(id);
            let group = self.reporter.groups().get(id);
            let reference_version =
                group.map_or(counted, |group| group.identity(id.0, counted).version);
            CatalogGroup { id: id_text(id), name, definition: text, reference_version }
        };
        let version = catalog.version().map_or_else(|| "none".into(), |at| at.to_string());
        let groups = catalog.iter().map(group).collect();
        // Whoever asked may have given up.
        let _ = asker.send(Ok(quorba_admin::Catalog { version, groups }));
    }

    /// An operator creates, changes or deletes a group.
    pub(super) fn define(
        &mut self,
        operation: String,
        change: quorba_admin::CatalogChange,
        asker: DefineAsker,
    ) {
        if let Err(what) = self.judge(&change) {
            let _ = asker.send(Err(what.into()));
            return;
        }
        let change = match change {
            quorba_admin::CatalogChange::Create(definition) => {
                CatalogChange::Create(as_ordered(definition))
            }
            quorba_admin::CatalogChange::Change(definition) => {
                CatalogChange::Change(as_ordered(definition))
            }
            quorba_admin::CatalogChange::Delete(name) => CatalogChange::Delete(name.into()),
        };
        let id = self.defines.open(asker);
        let now = self.now();
        self.engine.handle_define(now, id, operation.into_bytes().into(), change);
    }

    /// What is wrong with a change, as far as this node can tell. Whether there is such a group,
    /// the order tells: the change may be a repetition.
    fn judge(&mut self, change: &quorba_admin::CatalogChange) -> Result<(), String> {
        let catalog = self.engine.catalog();
        let known = self.defines.known.get_or_insert_with(|| {
            let all: Vec<_> =
                catalog.iter().map(|(_, definition)| as_in_file(definition)).collect();
            all.iter().collect()
        });
        match change {
            quorba_admin::CatalogChange::Create(definition)
            | quorba_admin::CatalogChange::Change(definition) => {
                read_definition(self.reader.shared(), &definition.text, known)
                    .map(drop)
                    .map_err(|report| report.to_string())
            }
            quorba_admin::CatalogChange::Delete(name) if catalog.id_of(name).is_some() => {
                check_delete(name, known)
            }
            quorba_admin::CatalogChange::Delete(_) => Ok(()),
        }
    }

    /// Who reads the domain file again wants to know something, or has something done.
    pub(super) fn reread(&mut self, ask: Ask) {
        let catalog = self.engine.catalog();
        match ask {
            // Whoever asked may have ended.
            Ask::Running(asker) => {
                _ = asker.send(catalog.iter().map(|(_, one)| as_in_file(one)).collect());
            }
            Ask::Says(definitions) => {
                self.defines.file = Some(definitions);
                self.defines.differs = None;
            }
            Ask::Define { before, change, asker } => {
                let id = catalog.id_of(change.name());
                let definition = id.and_then(|id| Some((id, as_in_file(catalog.get(id)?))));
                match (definition, &change) {
                    (
                        Some((id, found)),
                        quorba_admin::CatalogChange::Create(wanted)
                        | quorba_admin::CatalogChange::Change(wanted),
                    ) if found == *wanted => {
                        _ = asker.send(Ok(Defined { id: id_text(id), existed: true }));
                    }
                    (found, _) if found.as_ref().map(|(_, one)| &one.text) == before.as_ref() => {
                        let version = catalog.version();
                        self.define(file_operation(version, &change), change, asker);
                    }
                    _ => _ = asker.send(Err("it was changed meanwhile".to_owned().into())),
                }
            }
        }
    }

    /// In which groups the domain file of this node says something else than the domain does.
    pub(super) fn file_differs(&mut self) -> Option<String> {
        let Some(version) = self.engine.catalog().version() else {
            return self.find_differences();
        };
        if let Some((of, said)) = &self.defines.differs
            && *of == version
        {
            return said.clone();
        }
        let said = self.find_differences();
        self.defines.differs = Some((version, said.clone()));
        said
    }

    fn find_differences(&self) -> Option<String> {
        let running = self.engine.catalog().iter();
        let running: Vec<(&str, Cow<'_, [u8]>)> =
            running.filter_map(|(_, one)| Some((&*one.name, as_a_file_says(one)?))).collect();
        let running = running.iter().map(|(name, text)| (*name, &**text));
        let file = self.defines.file.as_deref().unwrap_or(self.reader.shared().definitions());
        let found = group_differences(file, running);
        let some = |what: &str, names: &[String]| {
            let named = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>();
            let more = names.len().saturating_sub(NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!names.is_empty()).then(|| format!("{what}: {}{more}", named.join(", ")))
        };
        let parts: Vec<String> = [
            some("it says something else of", &found.differ),
            some("it alone has", &found.only_here),
            some("it lacks", &found.only_there),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| {
            format!(
                "the domain file of this node is not what runs ({}); `quorba config apply FILE` \
                 brings the domain to what a file says",
                parts.join("; ")
            )
        })
    }

    /// Groups that the domain has and this node cannot read.
    pub(super) fn unreadable(&self) -> Option<String> {
        let known = self.reporter.groups();
        let is_known = |id: GroupId| known.get(id).is_some() || known.outside().contains(id);
        let all = self.engine.catalog().iter().filter(|(id, _)| !is_known(*id));
        let names: Vec<&str> = all.map(|(_, one)| &*one.name).collect();
        let named = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| {
            format!(
                "the definitions of these groups mean nothing to this node, which does not serve \
                 them: {named}{more}; its log says why. Run one version of the program on all nodes"
            )
        })
    }

    /// The domain has a group or a server outside, or it is something else, or it is gone.
    pub(super) fn defined(
        &mut self,
        id: GroupId,
        news: DefinitionNews,
        (definition, operation): (Option<Definition>, Option<Bytes>),
    ) {
        self.rereader.look();
        // One that the component goes on from has none.
        let operation = operation.map(|name| String::from_utf8_lossy(&name).into_owned());
        let id_text = id_text(id);
        let Some(definition) = definition else {
            if let Some(name) = self.reporter.groups().name_of(id).map(str::to_owned) {
                self.reader.forget(&name);
                self.note_known(&name, None);
                if self.reporter.close_outside(id).is_some() {
                    self.external.forget(id);
                    let what = "the server outside is deleted";
                    return tracing::info!(outside = name, id = id_text, operation, "{what}");
                }
                tracing::info!(group = name, id = id_text, operation, "the group is deleted");
            }
            return self.close_group(id);
        };
        self.note_known(&definition.name, Some(&definition));
        let name = &*definition.name;
        let what = match news {
            DefinitionNews::Created => "created",
            DefinitionNews::Changed => "changed",
            DefinitionNews::Deleted => "deleted",
        };
        let opened = match self.reader.read(&definition) {
            Ok(Read::Group(group)) => {
                tracing::info!(group = name, id = id_text, operation, "the group is {what}");
                self.change_group(id, group)
            }
            Ok(Read::Outside(server)) => {
                let text = "the server outside is";
                tracing::info!(outside = name, id = id_text, operation, "{text} {what}");
                self.external.define(id, &server);
                return self.reporter.open_outside(id, server);
            }
            // The engine tells of it.
            Err(_) => return,
        };
        if let Err(error) = opened {
            tracing::error!(group = name, %error, "this node lacks what the group needs");
        }
    }

    fn note_known(&mut self, name: &str, definition: Option<&Definition>) {
        let Some(known) = &mut self.defines.known else { return };
        match definition {
            Some(definition) => known.insert(&as_in_file(definition)),
            None => known.remove(name),
        }
    }

    /// The engine wants it written down.
    pub(super) fn save_catalog(&mut self, record: CatalogRecord) {
        self.store.write(record);
        if self.store.wants_whole()
            && let Some(whole) = self.engine.catalog().record()
        {
            self.store.write(whole);
        }
    }

    /// A log is not found without its groups: what they are is on disk before it begins, or goes on
    /// in another component. A node whose first durable group was created begins one.
    pub(super) fn before_log(&mut self, output: &LogOutput) -> Result<(), NodeError> {
        if !matches!(output, LogOutput::Append(LogRecord::Component { .. })) {
            return Ok(());
        }
        self.store.sync();
        if self.log.is_some() {
            return Ok(());
        }
        let domain = self.reader.shared();
        let node = domain.node(self.me).ok_or(NodeError::NoSuchNode)?;
        let path = node.state_dir.join("log");
        // Of durable groups that were all deleted before this boot.
        if path.exists() {
            tracing::info!(path = %path.display(), "the log of deleted groups is removed");
            fs::remove_dir_all(&path).map_err(|source| NodeError::Log { path, source })?;
        }
        self.log = Some(self.logs.open(domain)?.0);
        Ok(())
    }
}
