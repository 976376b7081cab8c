/**
 * A scripted ACP agent for tests: `node acp-agent.ts SCENARIO [ARGUMENT]` (`acp-scenarios.ts`). It does not use the SDK, so
 * that it can violate the protocol. It exits with 0 when its input ends.
 */
import { createInterface } from 'node:readline';
import { type Scenario, scenarios } from './acp-scenarios.ts';
import { type Answer, type Json, type RpcId, Wire } from './acp-wire.ts';

const [name = '', argument] = process.argv.slice(2);
const scenario: Scenario | undefined = Object.entries(scenarios).find(([key]) => key === name)?.[1];
if (!scenario) {
  process.stderr.write(`scenarios: ${Object.keys(scenarios).join(', ')}\n`);
  process.exit(2);
}
const wire = new Wire();
let cancelTurn = () => {};
scenario.onStart?.(wire);
createInterface({ input: process.stdin })
  .on('line', (line) => receive(JSON.parse(line)))
  .on('close', () => process.exit(0));

function receive({ id, method, params = {}, ...answer }: Json & { id?: RpcId; params?: Json }): void {
  if (method === undefined) wire.resolveRequest(id ?? null, answer as Answer);
  else if (id === undefined) notified(String(method));
  else if (method !== 'session/prompt') wire.send({ id, ...respond(String(method), params) });
  else void turn().then((stopReason) => wire.send({ id, result: { stopReason } }));
}

function notified(method: string): void {
  if (method !== 'session/cancel') return;
  if (scenario!.ignores_cancel) wire.sendText('I ignore the cancellation.');
  else cancelTurn();
}

function respond(method: string, params: Json): Answer {
  switch (method) {
    case 'initialize':
      return {
        result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [], ...scenario!.initialize },
      };
    case 'authenticate':
      wire.signed_in = true;
      return { result: {} };
    case 'session/new':
    case 'session/load':
      return open(method, params);
    default:
      return { error: { code: -32601, message: `Method not found: ${method}` } };
  }
}

function open(method: string, params: Json): Answer {
  const error = scenario!.rejectSession?.(wire, method);
  if (error) return { error };
  wire.session_id = String(params.sessionId ?? 'session-1');
  return { result: method === 'session/new' ? { sessionId: wire.session_id } : {} };
}

async function turn(): Promise<string> {
  wire.cancelled = false;
  const cancelled = new Promise<string>((resolve) => {
    cancelTurn = () => {
      wire.cancel();
      resolve('cancelled');
    };
  });
  return Promise.race([scenario!.turn?.(wire, argument) ?? hello(), cancelled]);
}

async function hello(): Promise<string> {
  wire.sendText('Hello.');
  return 'end_turn';
}
