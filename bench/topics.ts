/** The topics of `docs/reference/figures.md`, in the order of the page, and the rows that belong to each. */
export interface Topic {
  title: string;
  /** What it means for people who use svc. */
  about: string;
  rows: readonly string[];
}

export const topics: readonly Topic[] = [
  {
    title: 'Starting and memory',
    about:
      'How long you wait after `svc serve`, and what the service needs while nothing happens. OpenCode’s server is ' +
      'beside it because it is another program that puts coding agents behind an HTTP API.',
    rows: ['start', 'ended-agents', 'commands', 'opencode'],
  },
  {
    title: 'Agents',
    about:
      'What a process costs that svc supervises. pm2 starts the same processes on the same machine; it stores their ' +
      'output in plain files, does not sync or number it, and does not continue a stream where a client left off.',
    rows: ['pm2', 'idle', 'sandbox'],
  },
  {
    title: 'Streams',
    about:
      'How fast a byte that an agent prints is committed to disk and reaches a client. The *raw path* is the least that ' +
      'any program must do for that: read a file, insert its blocks into SQLite with the same settings, and write them to a ' +
      'socket.',
    rows: ['throughput', 'stall', 'latency', 'acp', 'fan-out', 'nchan', 'replay'],
  },
  {
    title: 'Teams and mail',
    about:
      'Steps of a run, and messages between its actors. `make` builds the same graph of commands; it stores nothing and ' +
      'cannot continue after a crash.',
    rows: ['engine', 'teams', 'runs-at-once', 'mail'],
  },
  {
    title: 'Requests and the database',
    about: 'Reading a record over HTTP, and what one commit costs on this machine.',
    rows: ['requests', 'commits'],
  },
  {
    title: 'Remote nodes',
    about:
      'The same agents on a node that joined over loopback, so the link is measured and the network is not.',
    rows: ['remote-latency', 'remote-throughput', 'remote-memory', 'remote-outage'],
  },
  {
    title: 'PostgreSQL',
    about:
      'The same service with its data in PostgreSQL. The *COPY path* is the least that any program must do to keep a ' +
      'stream there: read a file, copy its blocks into a table, commit each megabyte, and write it to a socket.',
    rows: ['postgres-throughput', 'postgres-latency', 'postgres-engine', 'postgres-mixed', 'postgres-peers'],
  },
  {
    title: 'Several control planes',
    about: 'What clients notice when one of two control planes that share a database ends.',
    rows: ['takeover'],
  },
];
