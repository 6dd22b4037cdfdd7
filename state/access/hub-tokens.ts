import type { HubToken } from '../../contracts/index.js';
import { indexKey, nowText, redisCall, type StoreContext } from '../core/context.js';

/** Tokens of the Hugging Face Hub, one per project. Stored in plain text, because the Hub needs them. */
export type HubTokens = ReturnType<typeof hubTokens>;

export function hubTokens(context: StoreContext) {
  const { redis, commands } = context;
  const key = (project: string) => indexKey(context, project, 'hub-token');

  return {
    /** Returns the token; null without one. It must not reach a log, an event or a document. */
    findHubToken: (project: string): Promise<string | null> => redisCall(redis.hget(key(project), 'token')),

    async getHubToken(project: string): Promise<HubToken> {
      return { set_at: await redisCall(redis.hget(key(project), 'set_at')) };
    },

    /** Replaces the token; null deletes it. */
    async putHubToken(project: string, token: string | null): Promise<void> {
      const fields = token === null ? {} : { token, set_at: nowText() };
      await commands.run('put_hub_token', { project, fields });
    },
  };
}
