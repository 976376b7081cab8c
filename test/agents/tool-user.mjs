// An ACP agent that uses the first MCP server that it gets. Its argument is a JSON list of [tool, arguments]: in each turn, it
// calls these tools and sends their results as a JSON message. Like many clients, it does not pass its own environment to the
// server.
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
  const request = async (method, params) => {
    send({ id: ++id, method, params });
    for (;;) {
      const response = JSON.parse((await lines.next()).value);
      if (response.id === id) return response.result;
    }
  };
  await request('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'tool-user', version: '1' },
  });
  send({ method: 'notifications/initialized' });
  const results = [];
  for (const [name, args] of calls) {
    const { content } = await request('tools/call', { name, arguments: args });
    results.push(JSON.parse(content[0].text));
  }
  child.stdin.end();
  return results;
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
