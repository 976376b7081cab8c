/** Adds the logs of the planes and nodes that a test started to its error if it fails. */
import { afterEach } from 'vitest';
import { failureReport, forgetEnded } from '../src/testing/failure-logs.ts';

// Runs after the hooks of the test file, which end the processes.
afterEach(({ task }) => {
  const error = task.result?.errors?.[0];
  const report = error && failureReport();
  if (report) error.message += `\n${report}`;
  forgetEnded();
});
