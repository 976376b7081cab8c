/** `svc cluster`: lists the control planes that share the database (root only). */
import type { Command } from 'commander';
import { type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { remote } from '../../../cli/options.ts';
import { type Column, printJson, printRows } from '../../../cli/output.ts';
import { formatSpan } from '../../../cli/span.ts';
import { MAIN_NODE } from '../../../core/node.ts';
import type { PlaneRecord } from '../rules.ts';

interface Options extends ApiOptions {
  json?: boolean;
}

/** `nodes`: the remote nodes. Only the active plane is linked to them. Spans are measured by the clock of the database. */
function planeColumns(
  planes: readonly PlaneRecord[],
  nodes: readonly { status: string }[],
): Column<PlaneRecord>[] {
  const now = Math.max(...planes.map(({ last_seen_at }) => Date.parse(last_seen_at)));
  const span = (time: string) => formatSpan(Date.parse(time), now);
  const linked = nodes.filter(({ status }) => status === 'connected').length;
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'STATE', value: ({ state }) => state },
    { title: 'VERSION', value: ({ version }) => version },
    { title: 'ADDRESS', value: ({ address }) => address },
    {
      title: 'STARTED',
      value: ({ started_at }) => started_at,
      short: ({ started_at }) => `${span(started_at)} ago`,
    },
    { title: 'LAST SEEN', value: ({ last_seen_at }) => last_seen_at, spare: true },
    { title: 'LINKS', value: ({ state }) => (state === 'active' ? `${linked}/${nodes.length}` : null) },
    { title: 'LAG', value: ({ last_seen_at }) => span(last_seen_at) },
  ];
}

export function addCluster(program: Command, context: Context): void {
  const { io } = context;
  remote(program, 'cluster', 'list the control planes that share the database (root)')
    .addHelpText(
      'after',
      '\nLINKS: connected and registered remote nodes. LAG: how long the last heartbeat is behind the newest one.',
    )
    .action(async (options: Options) => {
      const api = await connect(context, options);
      const planes = await api.call('listPlanes', {});
      if (planes.length === 0 && !options.json) {
        io.stdout.write(
          'This control plane does not share its database with others: cluster.listen is not set\n',
        );
        return;
      }
      if (options.json) return printJson(io, planes);
      const nodes = (await api.all('listAgentNodes', {})).filter(({ id }) => id !== MAIN_NODE);
      await printRows(io, planes, planeColumns(planes, nodes), options);
    });
}
