/**
 * `npm run bench:web [-- <row>… --quick]`: measures the web UI in a real browser: its smoothness, its loading time and its size.
 * A run of all rows without `--quick` rewrites its chapter in `docs/reference/figures.md`.
 */
import { writeChapter } from './chapter.ts';
import type { Row } from './figure.ts';
import { machine, sections, summary } from './report.ts';
import { runRows } from './run.ts';
import { fleet } from './web/rows/fleet.ts';
import { flood } from './web/rows/flood.ts';
import { loading } from './web/rows/loading.ts';
import { message } from './web/rows/message.ts';
import { output } from './web/rows/output.ts';
import { pixel } from './web/rows/pixel.ts';
import { sizes } from './web/rows/sizes.ts';
import { typing } from './web/rows/typing.ts';

const rows: Row[] = [output, flood, fleet, typing, message, pixel, loading, sizes];
const ABOUT =
  '`npm run bench:web` writes this section. It measures the built web UI of a real service in Chromium, with the screen size of a ' +
  'desktop; everything runs on one machine. The limits are measured in the same run, on an almost empty page. To run one row: ' +
  '`npm run bench:web -- <row>`; a short test that measures little: `npm run bench:web -- --quick`. It needs Chromium, and a ' +
  'machine that does nothing else at the same time.';

const measured = await runRows(rows);
if (measured) {
  const parts = [ABOUT, machine(), summary(measured), ...sections(measured, '###')];
  await writeChapter('web UI', parts.join('\n\n'));
  console.log('written to docs/reference/figures.md');
}

// See `bench/main.ts`.
process.exit();
