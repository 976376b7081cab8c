/**
 * `npm run bench [-- <row>… --quick]`: measures the performance of the service and compares it with its goals and with the
 * limits of the machine in the same run. `remote` selects all rows that start with it. A run of all rows without `--quick` is
 * stored in `bench/results/`, and rewrites `docs/reference/figures.md` from the last runs.
 */
import { writeFigures } from './chapter.ts';
import type { Row } from './figure.ts';
import { load_before, page } from './report.ts';
import { lastResults, saveResult } from './results.ts';
import { acp } from './rows/acp.ts';
import { commands } from './rows/commands.ts';
import { commits } from './rows/commits.ts';
import { endedAgents } from './rows/ended-agents.ts';
import { engine } from './rows/engine.ts';
import { fanOut } from './rows/fan-out.ts';
import { idle } from './rows/idle.ts';
import { latency } from './rows/latency.ts';
import { mail } from './rows/mail.ts';
import { nchan } from './rows/peers-nchan.ts';
import { opencode } from './rows/peers-opencode.ts';
import { pm2 } from './rows/peers-pm2.ts';
import { postgresPeers } from './rows/peers-postgres.ts';
import { postgresEngine, postgresLatency, postgresThroughput } from './rows/postgres.ts';
import { postgresMixed } from './rows/postgres-mixed.ts';
import { remoteLatency } from './rows/remote-latency.ts';
import { remoteMemory } from './rows/remote-memory.ts';
import { remoteOutage } from './rows/remote-outage.ts';
import { remoteThroughput } from './rows/remote-throughput.ts';
import { replay } from './rows/replay.ts';
import { requests } from './rows/requests.ts';
import { sandbox } from './rows/sandbox.ts';
import { start } from './rows/start.ts';
import { takeover } from './rows/takeover.ts';
import { runsAtOnce, teams } from './rows/teams.ts';
import { stall, throughput } from './rows/throughput.ts';
import { runRows } from './run.ts';

const rows: Row[] = [
  throughput,
  stall,
  latency,
  acp,
  fanOut,
  idle,
  replay,
  requests,
  start,
  endedAgents,
  commands,
  sandbox,
  commits,
  engine,
  teams,
  runsAtOnce,
  mail,
  pm2,
  nchan,
  opencode,
  remoteLatency,
  remoteThroughput,
  remoteMemory,
  remoteOutage,
  postgresThroughput,
  postgresLatency,
  postgresEngine,
  postgresPeers,
  postgresMixed,
  takeover,
];

const measured = await runRows(rows);
if (measured) {
  const name = await saveResult(measured, load_before);
  await writeFigures(page(await lastResults(), rows));
  console.log(`written to bench/results/${name} and docs/reference/figures.md`);
}

// In Node 26, a socket that is reset while it is being ended is never closed, and a normal exit would wait for it.
process.exit();
