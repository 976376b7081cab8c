/** What an agent might say that speaks ACP, wrongly: messages of the protocol with whatever in their fields, and lines that are none. */
import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import { type Dice, garbled } from './dice.ts';
import { anything, Fields, jsonOf, type Nonsense, Raw, text } from './nonsense.ts';

const METHODS = [
  ...Object.values(AGENT_METHODS),
  ...Object.values(CLIENT_METHODS),
  ...Object.values(PROTOCOL_METHODS),
];
const UPDATES = [
  'plan',
  'available_commands_update',
  'current_mode_update',
  'config_option_update',
  'session_info_update',
  'usage_update',
  'agent_message_chunk',
  'agent_thought_chunk',
  'user_message_chunk',
  'tool_call',
  'tool_call_update',
];
const KINDS = ['allow_once', 'allow_always', 'reject_once', 'reject_always'];
const STOPS = ['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled'];
/** The name of the message that ends what an agent has to say. */
export const LAST_METHOD = '_fuzz/last';

/** JSON of one line, with its end. `asked`: JSON of the ids of requests to the agent that it has not answered, oldest first. */
export function line(dice: Dice, asked: string[]): Buffer {
  if (dice.chance(0.03)) return noise(dice);
  const wrong = dice.pick([0, 0, 0.05, 0.2]);
  const make = (value: Nonsense): Nonsense => (dice.chance(wrong) ? anything(dice) : value);
  const json = jsonOf(message(dice, asked, make));
  const bytes = Buffer.from(`${json}${dice.chance(wrong / 4) ? '\r\n' : '\n'}`);
  return dice.chance(wrong / 2) ? garbled(dice, bytes) : bytes;
}

function noise(dice: Dice): Buffer {
  switch (dice.below(8)) {
    case 0:
      return dice.bytes(dice.below(300));
    case 1:
      return Buffer.from('Loading…\n');
    case 2:
      return Buffer.from('[]\n[{"jsonrpc":"2.0"}]\n');
    case 3:
      return Buffer.alloc(dice.pick([1, 70_000]), '\n');
    case 4:
      return Buffer.from(
        `{"jsonrpc":"2.0","method":"session/update","params":{"x":"${'y'.repeat(dice.pick([65_536, 1_100_000]))}"}}\n`,
      );
    case 5:
      return Buffer.from('\0\0\0\n\ufeff{}\n');
    case 6:
      return Buffer.from([0x7b, 0xff, 0xfe, 0x0a]);
    default:
      return Buffer.from(`{"jsonrpc":"2.0","id":${'9'.repeat(dice.pick([20, 400]))},"method":"x"}\n`);
  }
}

type Make = (value: Nonsense) => Nonsense;

function message(dice: Dice, asked: string[], make: Make): Nonsense {
  const fields: [string, Nonsense][] = [['jsonrpc', make('2.0')]];
  const kind = dice.below(10);
  if (kind < 3) {
    const known = dice.chance(0.9) ? asked.shift() : undefined;
    const id = known === undefined ? idOf(dice, make) : new Raw(known);
    fields.push(
      ['id', id],
      dice.chance(0.15) ? ['error', error(dice, make)] : ['result', result(dice, make)],
    );
    if (dice.chance(0.05)) fields.push(['result', null]);
  } else if (kind < 6) {
    fields.push(['method', make('session/update')], ['params', update(dice, make)]);
  } else if (kind < 8) {
    fields.push(
      ['id', idOf(dice, make)],
      ['method', make('session/request_permission')],
      ['params', permission(dice, make)],
    );
  } else if (kind < 9) {
    fields.push(['id', idOf(dice, make)], ['method', make(dice.pick(METHODS))], ['params', anything(dice)]);
  } else {
    fields.push(['method', make(dice.pick(METHODS))], ['params', cancelling(dice, make)]);
  }
  return new Fields(fields);
}

function idOf(dice: Dice, make: Make): Nonsense {
  return make(
    dice.pick<Nonsense>([1, 2, '1', 'x', null, '', 0, -1, new Raw('1.0'), new Raw('1e0'), 2 ** 53]),
  );
}

function error(dice: Dice, make: Make): Nonsense {
  const code = make(dice.pick([-32000, -32601, -32603, 0]));
  return new Fields([
    ['code', code],
    ['message', make(text(dice))],
    ['data', anything(dice)],
  ]);
}

/** Whatever the answer to a request of ours may hold, all in one. */
function result(dice: Dice, make: Make): Nonsense {
  return new Fields([
    ['protocolVersion', make(1)],
    ['agentCapabilities', make(new Fields([['loadSession', make(dice.chance(0.5))]]))],
    [
      'authMethods',
      make(
        dice.some(
          2,
          () =>
            new Fields([
              ['id', make('key')],
              ['name', make('Key')],
            ]),
        ),
      ),
    ],
    ['sessionId', make('s')],
    [
      'modes',
      make(
        new Fields([
          ['currentModeId', make('ask')],
          ['availableModes', make(dice.some(3, () => named(dice, make)))],
        ]),
      ),
    ],
    ['configOptions', make(dice.some(3, () => named(dice, make)))],
    ['stopReason', make(dice.pick(STOPS))],
  ]);
}

function named(dice: Dice, make: Make): Nonsense {
  return new Fields([
    ['id', make(dice.pick(['ask', 'auto', '__proto__']))],
    ['name', make(text(dice))],
    ['type', make('select')],
    ['currentValue', make('a')],
    ['options', make([])],
  ]);
}

function update(dice: Dice, make: Make): Nonsense {
  const content = new Fields([
    ['type', make('text')],
    ['text', make(text(dice))],
  ]);
  const inner: [string, Nonsense][] = [
    ['sessionUpdate', make(dice.pick(UPDATES))],
    ['content', make(dice.chance(0.8) ? content : [content])],
    [
      'entries',
      make(
        dice.some(
          4,
          () =>
            new Fields([
              ['content', make(text(dice))],
              ['status', make('pending')],
              ['priority', make('low')],
            ]),
        ),
      ),
    ],
    ['availableCommands', make(dice.some(3, () => named(dice, make)))],
    ['currentModeId', make('auto')],
    ['configOptions', make(dice.some(2, () => named(dice, make)))],
    ['toolCallId', make(`c${dice.below(4)}`)],
    ['title', make(text(dice))],
    ['status', make(dice.pick(['pending', 'in_progress', 'completed', 'failed']))],
    ['used', make(dice.below(1_000))],
    ['size', make(1_000)],
    [
      'cost',
      make(
        new Fields([
          ['amount', make(dice.next())],
          ['currency', make('USD')],
        ]),
      ),
    ],
  ];
  return new Fields([
    ['sessionId', make('s')],
    ['update', make(new Fields(inner.filter(() => dice.chance(0.6))))],
  ]);
}

function permission(dice: Dice, make: Make): Nonsense {
  const options = dice.some(4, () =>
    make(
      new Fields([
        ['optionId', make(dice.pick(['yes', 'no', 'always', '', text(dice)]))],
        ['name', make(text(dice))],
        ['kind', make(dice.pick(KINDS))],
      ]),
    ),
  );
  const call = new Fields([
    ['toolCallId', make('c1')],
    ['title', make(text(dice))],
    ['rawInput', anything(dice)],
  ]);
  return new Fields([
    ['sessionId', make('s')],
    ['toolCall', make(call)],
    ['options', make(options)],
  ]);
}

function cancelling(dice: Dice, make: Make): Nonsense {
  return new Fields([
    ['sessionId', make('s')],
    ['requestId', idOf(dice, make)],
  ]);
}
