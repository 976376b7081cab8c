/** The compile cache of all processes that tests start. Without it, each start would compile everything again. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const COMPILED =
  process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), `svc-test-compiled-${process.getuid?.()}`);
