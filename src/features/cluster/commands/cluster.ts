/** `svc cluster`: lists the control planes that share the database (root only). */
import type { Command } from 'commander';
import { type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { remote } from '../../../cli/options.ts';
import { type Column, printRows } from '../../../cli/output.ts';
import type { PlaneRecord } from '../rules.ts';

interface Options extends ApiOptions {
  json?: boolean;
}

const columns: Column<PlaneRecord>[] = [
  { title: 'NAME', value: (plane) => plane.name },
  { title: 'STATE', value: (plane) => plane.state },
  { title: 'VERSION', value: (plane) => plane.version },
  { title: 'ADDRESS', value: (plane) => plane.address },
  { title: 'STARTED', value: (plane) => plane.started_at },
  { title: 'LAST SEEN', value: (plane) => plane.last_seen_at },
];

export function addCluster(program: Command, context: Context): void {
  const { io } = context;
  remote(program, 'cluster', 'list the control planes that share the database (root)').action(
    async (options: Options) => {
      const api = await connect(context, options);
      const planes = await api.call('listPlanes', {});
      if (planes.length === 0 && !options.json) {
        io.stdout.write(
          'This control plane does not share its database with others: cluster.listen is not set\n',
        );
        return;
      }
      await printRows(io, planes, columns, options);
    },
  );
}
