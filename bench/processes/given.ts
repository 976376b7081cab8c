import { once } from 'node:events';

/** What the bench gave this process to do: its first message. Ends the process with the bench. */
export async function given<Args>(): Promise<Args> {
  process.on('disconnect', () => process.exit());
  const [args] = await once(process, 'message');
  return args as Args;
}
