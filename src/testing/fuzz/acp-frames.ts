/** Malformed output of an ACP agent: messages of the protocol with arbitrary fields, and lines that are not messages. */
import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import { anything, Fields, jsonOf, type Malformed, Raw, text } from './malformed.ts';
import { garbled, type Rng } from './rng.ts';

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
  'subagent_update',
  'session_message',
];
const KINDS = ['allow_once', 'allow_always', 'reject_once', 'reject_always'];
const STOPS = ['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled'];
/** The method of an agent's last message. */
export const LAST_METHOD = '_fuzz/last';

/** One line with its line ending. `request_ids`: of unanswered requests to the agent as JSON, oldest first. */
export function line(rng: Rng, request_ids: string[]): Buffer {
  if (rng.chance(0.03)) return noise(rng);
  const error_rate = rng.pick([0, 0, 0.05, 0.2]);
  const make = (value: Malformed): Malformed => (rng.chance(error_rate) ? anything(rng) : value);
  const json = jsonOf(message(rng, request_ids, make));
  const bytes = Buffer.from(`${json}${rng.chance(error_rate / 4) ? '\r\n' : '\n'}`);
  return rng.chance(error_rate / 2) ? garbled(rng, bytes) : bytes;
}

function noise(rng: Rng): Buffer {
  switch (rng.below(8)) {
    case 0:
      return rng.bytes(rng.below(300));
    case 1:
      return Buffer.from('Loading…\n');
    case 2:
      return Buffer.from('[]\n[{"jsonrpc":"2.0"}]\n');
    case 3:
      return Buffer.alloc(rng.pick([1, 70_000]), '\n');
    case 4:
      return Buffer.from(
        `{"jsonrpc":"2.0","method":"session/update","params":{"x":"${'y'.repeat(rng.pick([65_536, 1_100_000]))}"}}\n`,
      );
    case 5:
      return Buffer.from('\0\0\0\n\ufeff{}\n');
    case 6:
      return Buffer.from([0x7b, 0xff, 0xfe, 0x0a]);
    default:
      return Buffer.from(`{"jsonrpc":"2.0","id":${'9'.repeat(rng.pick([20, 400]))},"method":"x"}\n`);
  }
}

type Make = (value: Malformed) => Malformed;

function message(rng: Rng, request_ids: string[], make: Make): Malformed {
  const fields: [string, Malformed][] = [['jsonrpc', make('2.0')]];
  const kind = rng.below(11);
  if (kind < 3) {
    const known = rng.chance(0.9) ? request_ids.shift() : undefined;
    const id = known === undefined ? idOf(rng, make) : new Raw(known);
    fields.push(['id', id], rng.chance(0.15) ? ['error', error(rng, make)] : ['result', result(rng, make)]);
    if (rng.chance(0.05)) fields.push(['result', null]);
  } else if (kind < 6) {
    fields.push(['method', make('session/update')], ['params', update(rng, make)]);
  } else if (kind < 8) {
    fields.push(
      ['id', idOf(rng, make)],
      ['method', make('session/request_permission')],
      ['params', permission(rng, make)],
    );
  } else if (kind < 9) {
    fields.push(
      ['id', idOf(rng, make)],
      ['method', make('elicitation/create')],
      ['params', elicitation(rng, make)],
    );
  } else if (kind < 10) {
    fields.push(['id', idOf(rng, make)], ['method', make(rng.pick(METHODS))], ['params', anything(rng)]);
  } else {
    fields.push(['method', make(rng.pick(METHODS))], ['params', cancelling(rng, make)]);
  }
  return new Fields(fields);
}

function idOf(rng: Rng, make: Make): Malformed {
  return make(
    rng.pick<Malformed>([1, 2, '1', 'x', null, '', 0, -1, new Raw('1.0'), new Raw('1e0'), 2 ** 53]),
  );
}

function error(rng: Rng, make: Make): Malformed {
  const code = make(rng.pick([-32000, -32601, -32603, 0]));
  return new Fields([
    ['code', code],
    ['message', make(text(rng))],
    ['data', anything(rng)],
  ]);
}

/** A result with the fields that answers to any of the service's requests may have. */
function result(rng: Rng, make: Make): Malformed {
  return new Fields([
    ['protocolVersion', make(1)],
    ['agentCapabilities', make(new Fields([['loadSession', make(rng.chance(0.5))]]))],
    [
      'authMethods',
      make(
        rng.some(
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
          ['availableModes', make(rng.some(3, () => named(rng, make)))],
        ]),
      ),
    ],
    ['configOptions', make(rng.some(3, () => named(rng, make)))],
    ['stopReason', make(rng.pick(STOPS))],
  ]);
}

function named(rng: Rng, make: Make): Malformed {
  return new Fields([
    ['id', make(rng.pick(['ask', 'auto', '__proto__']))],
    ['name', make(text(rng))],
    ['type', make('select')],
    ['currentValue', make('a')],
    ['options', make([])],
  ]);
}

function update(rng: Rng, make: Make): Malformed {
  const content = new Fields([
    ['type', make('text')],
    ['text', make(text(rng))],
  ]);
  const inner: [string, Malformed][] = [
    ['sessionUpdate', make(rng.pick(UPDATES))],
    ['content', make(rng.chance(0.8) ? content : [content])],
    [
      'entries',
      make(
        rng.some(
          4,
          () =>
            new Fields([
              ['content', make(text(rng))],
              ['status', make('pending')],
              ['priority', make('low')],
            ]),
        ),
      ),
    ],
    ['availableCommands', make(rng.some(3, () => named(rng, make)))],
    ['currentModeId', make('auto')],
    ['configOptions', make(rng.some(2, () => named(rng, make)))],
    ['toolCallId', make(`c${rng.below(4)}`)],
    ['title', make(text(rng))],
    ['status', make(rng.pick(['pending', 'in_progress', 'completed', 'failed']))],
    ['used', make(rng.below(1_000))],
    ['size', make(1_000)],
    [
      'cost',
      make(
        new Fields([
          ['amount', make(rng.next())],
          ['currency', make('USD')],
        ]),
      ),
    ],
  ];
  return new Fields([
    ['sessionId', make('s')],
    ['update', make(new Fields(inner.filter(() => rng.chance(0.6))))],
  ]);
}

function permission(rng: Rng, make: Make): Malformed {
  const options = rng.some(4, () =>
    make(
      new Fields([
        ['optionId', make(rng.pick(['yes', 'no', 'always', '', text(rng)]))],
        ['name', make(text(rng))],
        ['kind', make(rng.pick(KINDS))],
      ]),
    ),
  );
  const call = new Fields([
    ['toolCallId', make('c1')],
    ['title', make(text(rng))],
    ['rawInput', anything(rng)],
  ]);
  return new Fields([
    ['sessionId', make('s')],
    ['toolCall', make(call)],
    ['options', make(options)],
  ]);
}

function elicitation(rng: Rng, make: Make): Malformed {
  const type = rng.pick(['string', 'integer', 'number', 'boolean', 'array', 'object']);
  const field = new Fields([
    ['type', make(type)],
    ['title', make(text(rng))],
    ['enum', make(rng.chance(0.5) ? null : rng.some(3, () => make(text(rng))))],
    ['items', make(new Fields([['enum', make(rng.some(3, () => make(text(rng))))]]))],
    ['minimum', make(rng.pick([0, -1, new Raw('1e400')]))],
    ['default', anything(rng)],
  ]);
  const schema = new Fields([
    ['type', make('object')],
    ['properties', make(new Fields(rng.some(3, () => [text(rng), make(field)])))],
  ]);
  return new Fields([
    ['mode', make(rng.pick(['form', 'form', 'url']))],
    ['message', make(text(rng))],
    ['requestedSchema', make(schema)],
    ['url', make(rng.pick(['https://example.org/', 'javascript:1', text(rng)]))],
    ['elicitationId', make('e')],
  ]);
}

function cancelling(rng: Rng, make: Make): Malformed {
  return new Fields([
    ['sessionId', make('s')],
    ['requestId', idOf(rng, make)],
  ]);
}
