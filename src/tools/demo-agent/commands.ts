/** Prompts that are commands. Each one does something that is hard to get from a real agent on request. */
import { setImmediate } from 'node:timers/promises';
import type { StopReason, ToolCall } from '@agentclientprotocol/sdk';
import { sleep } from '../../base/async.ts';
import { KIB } from '../../base/limits.ts';
import { type CommandName, commands } from './offers.ts';
import type { TurnOutput } from './turn-output.ts';

const UPDATES_PER_LOOK = 64;
const FILLER = 'All work and no play makes a long message. ';

interface Command {
  name: CommandName;
  /** Null if it is missing or not a whole number. */
  count: number | null;
}

export function commandOf(prompt: string): Command | null {
  const [, name = '', count] = /^\/([a-z]+)(?:\s+(\S+))?\s*$/.exec(prompt.trimStart()) ?? [];
  if (!Object.hasOwn(commands, name)) return null;
  return { name: name as CommandName, count: /^\d{1,9}$/.test(count ?? '') ? Number(count) : null };
}

export async function runCommand(output: TurnOutput, { name, count }: Command): Promise<StopReason> {
  if (name === 'fail') {
    await output.say('No. You asked me to refuse, so I do.');
    return 'refusal';
  }
  const { max } = commands[name];
  if (count === null || count < 1 || count > max) {
    await output.say(`\`/${name} N\` needs a whole number from 1 to ${max}.`);
    return 'end_turn';
  }
  await run[name](output, count);
  return 'end_turn';
}

const run: Record<Exclude<CommandName, 'fail'>, (output: TurnOutput, count: number) => Promise<void>> = {
  async ask(output, count) {
    let allowed = 0;
    for (let n = 1; n <= count; n++) {
      const call: ToolCall = {
        toolCallId: `${output.session.state.turns}-ask-${n}`,
        title: `Question ${n} of ${count}`,
        kind: 'other',
      };
      await output.tool(call, async () => {
        if (!(await output.isAllowed(call))) return { status: 'failed' };
        allowed++;
        return { status: 'completed' };
      });
    }
    await output.say(`${allowed} of ${count} allowed.`);
  },

  async flood(output, count) {
    const messageId = output.messageId();
    for (let n = 1; n <= count; n++) {
      const content = { type: 'text' as const, text: `${n} ` };
      await output.sendOnly({ sessionUpdate: 'agent_message_chunk', messageId, content });
      if (n % UPDATES_PER_LOOK !== 0) continue;
      await setImmediate();
      output.signal.throwIfAborted();
    }
    await output.say(`That was update ${count}.`);
  },

  async long(output, count) {
    const chars = count * KIB;
    const text = FILLER.repeat(Math.ceil(chars / FILLER.length)).slice(0, chars);
    await output.send({
      sessionUpdate: 'agent_message_chunk',
      messageId: output.messageId(),
      content: { type: 'text', text },
    });
  },

  async sleep(output, count) {
    await output.say(`Good night. I’ll sleep for ${count} s.`);
    await sleep(count * 1_000, output.signal);
    output.signal.throwIfAborted();
    await output.say('Good morning.');
  },
};
