/** Prompts that are commands: each does one thing that is hard to get from a real agent when one wants it. */
import { setImmediate } from 'node:timers/promises';
import type { StopReason, ToolCall } from '@agentclientprotocol/sdk';
import { sleep } from '../base/async.ts';
import { KIB } from '../base/limits.ts';
import { type CommandName, commands } from './offers.ts';
import type { Telling } from './telling.ts';

const UPDATES_PER_LOOK = 64;
const FILLER = 'All work and no play makes a long message. ';

interface Command {
  name: CommandName;
  /** Null when it is missing or no whole number. */
  count: number | null;
}

export function commandOf(prompt: string): Command | null {
  const [, name = '', count] = /^\/([a-z]+)(?:\s+(\S+))?\s*$/.exec(prompt.trimStart()) ?? [];
  if (!Object.hasOwn(commands, name)) return null;
  return { name: name as CommandName, count: /^\d{1,9}$/.test(count ?? '') ? Number(count) : null };
}

export async function runCommand(telling: Telling, { name, count }: Command): Promise<StopReason> {
  if (name === 'fail') {
    await telling.say('No: this is what I was asked to say.');
    return 'refusal';
  }
  const { max } = commands[name];
  if (count === null || count < 1 || count > max) {
    await telling.say(`\`/${name} N\` needs a whole number from 1 to ${max}.`);
    return 'end_turn';
  }
  await run[name](telling, count);
  return 'end_turn';
}

const run: Record<Exclude<CommandName, 'fail'>, (telling: Telling, count: number) => Promise<void>> = {
  async ask(telling, count) {
    let allowed = 0;
    for (let n = 1; n <= count; n++) {
      const call: ToolCall = {
        toolCallId: `${telling.session.state.turns}-ask-${n}`,
        title: `Question ${n} of ${count}`,
        kind: 'other',
      };
      await telling.tool(call, async () => {
        if (!(await telling.mayI(call))) return { status: 'failed' };
        allowed++;
        return { status: 'completed' };
      });
    }
    await telling.say(`${allowed} of ${count} allowed.`);
  },

  async flood(telling, count) {
    const messageId = telling.messageId();
    for (let n = 1; n <= count; n++) {
      const content = { type: 'text' as const, text: `${n} ` };
      await telling.tellOnly({ sessionUpdate: 'agent_message_chunk', messageId, content });
      if (n % UPDATES_PER_LOOK !== 0) continue;
      await setImmediate();
      telling.signal.throwIfAborted();
    }
    await telling.say(`That was update ${count}.`);
  },

  async long(telling, count) {
    const chars = count * KIB;
    const text = FILLER.repeat(Math.ceil(chars / FILLER.length)).slice(0, chars);
    await telling.tell({
      sessionUpdate: 'agent_message_chunk',
      messageId: telling.messageId(),
      content: { type: 'text', text },
    });
  },

  async sleep(telling, count) {
    await telling.say(`Good night, for ${count} s.`);
    await sleep(count * 1_000, telling.signal);
    telling.signal.throwIfAborted();
    await telling.say('Good morning.');
  },
};
