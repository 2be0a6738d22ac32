//! Limits that the load needs: a server admits 151 connections and 16,382 prepared statements unless told
//! otherwise. Where a question's load needs more and the study does not say, both limits are raised
//! in the plan, for every cell of the question alike, so that `ceteris plan` shows what was added
//! and no level gets what another lacks.

use study::{ConfigValue, Plan, Protocol, Workload};

/// `max_connections` of every server since 5.1, and what ceteris itself connects with.
const CONNECTIONS: u64 = 151;
const OWN_CONNECTIONS: u64 = 20;
/// `max_prepared_stmt_count` of every server since 5.1.
const STATEMENTS: u64 = 16_382;

/// Adds the limits that the plan's loads need.
pub fn raise_limits(plan: &mut Plan) {
    for question in &mut plan.questions {
        let connections = question
            .cells
            .iter()
            .map(|cell| u64::from(cell.setup.load.connections_max()) + OWN_CONNECTIONS)
            .max();
        let statements = question
            .cells
            .iter()
            .map(|cell| {
                let each = match cell.setup.load.protocol {
                    Protocol::Prepared => statements_per_connection(&cell.setup.workload),
                    Protocol::Text => 0,
                };
                u64::from(cell.setup.load.connections_max()) * each
            })
            .max();
        for cell in &mut question.cells {
            let config = &mut cell.setup.server.config;
            let mut raise = |name: &str, needed: Option<u64>, limit: u64| {
                let given =
                    config.contains_key(name) || config.contains_key(&format!("loose_{name}"));
                if let Some(needed) = needed.filter(|needed| *needed > limit && !given) {
                    let value = ConfigValue::Integer(i64::try_from(needed).unwrap_or(i64::MAX));
                    config.insert(name.to_owned(), value);
                }
            };
            raise("max_connections", connections, CONNECTIONS);
            raise("max_prepared_stmt_count", statements, STATEMENTS);
        }
    }
}

fn statements_per_connection(workload: &Workload) -> u64 {
    workload::statement_count(workload) as u64
}
