/** Measures all nodes for root: how fast their links answer, and how much disk space they have left. */
import type { Logger } from '../../base/log.ts';
import { MAIN_NODE, type NodeHealth } from '../../core/node.ts';
import type { Store } from '../../store/store.ts';
import type { NodeDirectory } from '../feature.ts';
import { listNodes } from './queries.ts';
import type { NodeMeasurement } from './rules.ts';
import type { Links } from './service.ts';

export interface MeasurementsDeps {
  store: Store;
  nodes: Pick<NodeDirectory, 'get' | 'main_folders'>;
  /** Null while links are disabled. */
  links: Pick<Links, 'latencies'> | null;
  log: Logger;
}

export class Measurements {
  readonly #deps: MeasurementsDeps;

  constructor(deps: MeasurementsDeps) {
    this.#deps = deps;
  }

  /** The main node first if agents run there, then the registered nodes, newest first. A node that does not answer delays the others only briefly. */
  async list(): Promise<NodeMeasurement[]> {
    const { store, links, nodes } = this.#deps;
    const rows = await store.read((reader) => listNodes(reader));
    const main = nodes.main_folders() === null ? [] : [MAIN_NODE];
    const ids = [...main, ...rows.map(({ id }) => id)];
    return Promise.all(
      ids.map(async (node_id) => ({
        node_id,
        latencies_ms: (links?.latencies(node_id) ?? []).map((ms) => Math.round(ms * 10) / 10),
        disk: await this.#disk(node_id),
      })),
    );
  }

  async #disk(node_id: string): Promise<NodeHealth['disk'] | null> {
    try {
      const node = this.#deps.nodes.get(node_id);
      await node.reach();
      const { disk } = await node.health();
      // A disk without a size was not reported.
      return disk.total_bytes === 0 ? null : disk;
    } catch (err) {
      this.#deps.log.debug({ err, node_id }, 'cannot read the disk space of a node');
      return null;
    }
  }
}
