import { once } from 'node:events';

/** The arguments of this process, which are the first message of the bench. The process exits with the bench. */
export async function readArguments<Args>(): Promise<Args> {
  process.on('disconnect', () => process.exit());
  const [args] = await once(process, 'message');
  return args as Args;
}
