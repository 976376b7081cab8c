/**
 * How each agent is redirected to the scripted model instead of its vendor's: only with environment variables, or files in a
 * temporary home folder.
 */
import type { AgentName } from '../known-agents.ts';

export const SCRIPTED_MODEL = 'svc-scripted';

export interface ModelSettings {
  env: Record<string, string>;
  /** By path below the home folder. */
  files: Record<string, string>;
}

const KEY = 'svc-doctor';

/** `url` is the model server's. */
const settingsOf: Record<AgentName, (url: string) => Partial<ModelSettings>> = {
  claude: (url) => ({
    env: {
      ...anthropicEnv(url),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // The script calls only tools that the agent offers.
      ENABLE_TOOL_SEARCH: 'false',
      IS_SANDBOX: '1',
    },
  }),
  codex: (url) => ({ env: openaiEnv(url), files: { '.codex/config.toml': codexConfig(url) } }),
  gemini: (url) => ({
    env: { ...geminiEnv(url), GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    files: { '.gemini/settings.json': settings('gemini-api-key', { general: { enableAutoUpdate: false } }) },
  }),
  goose: (url) => ({
    env: { ...openaiEnv(url), OPENAI_HOST: url, GOOSE_PROVIDER: 'openai', GOOSE_MODEL: SCRIPTED_MODEL },
  }),
  opencode: (url) => ({
    env: {
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    },
    files: { '.config/opencode/opencode.json': json(opencodeConfig(url)) },
  }),
  qwen: (url) => ({
    env: openaiEnv(url),
    files: {
      '.qwen/settings.json': settings('openai', {
        general: { enableAutoUpdate: false },
        tools: { toolSearch: { enabled: false } },
      }),
    },
  }),
};

/** For unknown agents: every variable that any known agent reads. */
export function modelSettingsFor(name: AgentName | null, url: string): ModelSettings {
  const every_vendor = { env: { ...openaiEnv(url), ...anthropicEnv(url), ...geminiEnv(url) }, files: {} };
  return { ...every_vendor, ...(name && { env: {}, ...settingsOf[name](url) }) };
}

function openaiEnv(url: string): Record<string, string> {
  return { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: KEY, OPENAI_MODEL: SCRIPTED_MODEL };
}

function anthropicEnv(url: string): Record<string, string> {
  return { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY };
}

function geminiEnv(url: string): Record<string, string> {
  return { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: KEY };
}

function codexConfig(url: string): string {
  return `model = "${SCRIPTED_MODEL}"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`;
}

function opencodeConfig(url: string): object {
  const model = `scripted/${SCRIPTED_MODEL}`;
  return {
    model,
    small_model: model,
    autoupdate: false,
    share: 'disabled',
    provider: {
      scripted: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${url}/v1`, apiKey: KEY },
        models: { [SCRIPTED_MODEL]: {} },
      },
    },
  };
}

/** For Gemini and its fork Qwen. */
function settings(selectedType: string, more: object = {}): string {
  const privacy = { usageStatisticsEnabled: false };
  return json({ security: { auth: { selectedType } }, privacy, ...more });
}

function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
