/**
 * Reads vitest's JSON report and prints "N passed, N failed" as the last line. A file that could not be loaded counts
 * as a failure. A skipped test fails the run if it could have run, which means on Linux as root, as in CI, unless its
 * name says that the kernel there does not allow sandboxes.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const reportSchema = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().optional(),
      assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })),
    }),
  ),
});

const counts = { passed: 0, failed: 0, skipped: 0 };
const must_run = process.platform === 'linux' && process.getuid?.() === 0;
let ok = true;

function count(): void {
  const report = reportSchema.parse(JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')));
  for (const file of report.testResults) {
    const before = counts.failed;
    for (const { fullName, status } of file.assertionResults) {
      if (status === 'passed') counts.passed++;
      else if (status === 'failed') counts.failed++;
      else {
        counts.skipped++;
        console.log(`skipped: ${fullName}`);
        if (must_run && !/macOS|\(sandbox: bwrap cannot/.test(fullName)) ok = false;
      }
    }
    if (file.status === 'failed' && counts.failed === before) {
      counts.failed++;
      console.log(`could not be run: ${file.name}: ${file.message ?? ''}`);
    }
  }
}

try {
  count();
} catch (error) {
  console.log(`no report of the tests: ${error instanceof Error ? error.message : error}`);
  counts.failed++;
}
if (counts.failed > 0 || counts.passed === 0 || !ok) process.exitCode = 1;
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
