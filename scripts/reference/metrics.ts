/** The reference of all metrics, from a service that was started for this. */
import { WITH_NODES } from '../../src/testing/agent-node.ts';
import { TestPlane } from '../../src/testing/plane.ts';
import { code, page, table } from './page.ts';

interface Metric {
  name: string;
  type: string;
  help: string;
  labels: Set<string>;
}

const ACCESS = `\`GET /metrics\` answers in the text format of Prometheus. It needs root's token or a token with the scope \`metrics\`, unless
\`metrics.open\` is set ([API tokens](../how-to/tokens.md)). The metrics of the process (\`process_*\`, \`nodejs_*\`) are the defaults of
[prom-client](https://github.com/siimon/prom-client).`;

export async function metricsPage(): Promise<string> {
  const rows = (await metrics()).map(({ name, type, help, labels }) => [
    code(name),
    type,
    [...labels].map(code).join(', '),
    help,
  ]);
  return page(
    'Metrics',
    'This page lists the Prometheus metrics of svc.',
    ['GET /metrics'],
    [ACCESS, table(['Metric', 'Type', 'Labels', 'Meaning'], rows)],
  );
}

async function metrics(): Promise<Metric[]> {
  const plane = await TestPlane.open({ env: { ...WITH_NODES, SVC_METRICS_OPEN: 'true' } });
  try {
    return parse(await (await fetch(`${plane.url}/metrics`)).text());
  } finally {
    await plane.close();
  }
}

function parse(text: string): Metric[] {
  const found = new Map<string, Metric>();
  for (const [, name, help] of text.matchAll(/^# HELP (svc_\w+) (.+)$/gm)) {
    found.set(name!, { name: name!, type: '', help: help!, labels: new Set() });
  }
  for (const [, name, type] of text.matchAll(/^# TYPE (svc_\w+) (\w+)$/gm)) found.get(name!)!.type = type!;
  for (const [, sample, labels] of text.matchAll(/^(svc_\w+)\{([^}]*)\}/gm)) {
    const metric = found.get(sample!) ?? found.get(sample!.replace(/_(bucket|sum|count)$/, ''));
    for (const [, label] of labels!.matchAll(/(\w+)="/g)) if (label !== 'le') metric?.labels.add(label!);
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
