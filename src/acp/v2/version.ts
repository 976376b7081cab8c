/** Only types are used from the SDK's v2. Its schemas are large, and nothing is validated with them. */
import type { PROTOCOL_VERSION } from '@agentclientprotocol/sdk/experimental/v2';

/** The version in preview. */
export const PREVIEW_VERSION = 2 satisfies typeof PROTOCOL_VERSION;
