// An agent that speaks ACP and uses the first MCP server it was offered: in each turn it says, as JSON, what that answers to
// its argument, a list of [tool, arguments]. As many clients do, it gives the server no environment of its own.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import { agent, methods, ndJsonStream } from '@agentclientprotocol/sdk';

const calls = JSON.parse(process.argv[2]);
let server;

async function useTools() {
  const { PATH } = process.env;
  const env = Object.fromEntries(server.env.map(({ name, value }) => [name, value]));
  const child = spawn(server.command, server.args, {
    env: { PATH, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let id = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = async (method, params) => {
    send({ id: ++id, method, params });
    for (;;) {
      const answer = JSON.parse((await lines.next()).value);
      if (answer.id === id) return answer.result;
    }
  };
  await ask('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'tool-user', version: '1' },
  });
  send({ method: 'notifications/initialized' });
  const answers = [];
  for (const [name, args] of calls) {
    const { content } = await ask('tools/call', { name, arguments: args });
    answers.push(JSON.parse(content[0].text));
  }
  child.stdin.end();
  return answers;
}

agent({ name: 'tool-user' })
  .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    [server] = params.mcpServers;
    return { sessionId: 'session-1' };
  })
  .onRequest(methods.agent.session.prompt, async ({ params: { sessionId }, client }) => {
    const content = { type: 'text', text: JSON.stringify(await useTools()) };
    await client.notify(methods.client.session.update, {
      sessionId,
      update: { sessionUpdate: 'agent_message_chunk', content },
    });
    return { stopReason: 'end_turn' };
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
