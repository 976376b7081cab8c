/** What the processes that run steps with DBOS and pg-boss have in common. */
import type { Shape } from '../graphs.ts';
import { stopwatch } from './clock.ts';

export interface PeerArgs {
  /** The folder of the installed package. */
  package: string;
}

/** Each request is answered with the `Elapsed` time. This one connects to an empty database and creates the tables. */
export interface PeerOpen {
  kind: 'open';
  url: string;
}

/** Runs a graph of steps that do nothing. `at_once`: how many steps of a fan run together. */
export interface PeerRun {
  kind: 'run';
  graph: Shape | 'children';
  count: number;
  at_once: number;
}

export interface PeerClose {
  kind: 'close';
}

export interface Peer {
  open(url: string): Promise<void>;
  run(run: PeerRun): Promise<void>;
  close(): Promise<void>;
}

export function servePeer(peer: Peer): void {
  process.on('message', async (message: PeerOpen | PeerRun | PeerClose) => {
    const elapsed = stopwatch();
    if (message.kind === 'open') await peer.open(message.url);
    if (message.kind === 'run') await peer.run(message);
    if (message.kind === 'close') await peer.close();
    process.send!(elapsed());
  });
}
