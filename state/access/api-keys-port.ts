import type { ApiKey, Page, Scope } from '../../contracts/index.js';
import type { NamedPageRequest } from '../core/paging.js';

export interface ApiKeyInput {
  name: string;
  scopes: Scope[];
  /** What the key can see; 'default' when it is absent. */
  project?: string;
  /** RFC 3339. */
  expires_at?: string | null;
  requests_per_minute?: number | null;
  /** It comes from the configuration of a server, which puts it at each start. */
  builtin?: boolean;
}

export interface ApiKeys {
  /** Accepts `secret` from now on; only its SHA-256 is stored. The same secret again replaces all but id and time. */
  putApiKey(secret: string, key: ApiKeyInput): Promise<ApiKey>;
  /** Null when the secret is unknown, or not one of its key any more. Whether the key has expired is the caller's to see. */
  findApiKey(secret: string): Promise<ApiKey | null>;
  getApiKey(keyId: string): Promise<ApiKey | null>;
  /**
   * Gives it, for all of its secrets, the name, expiry and rate that `change` gives it, which may be asked more than once. Null when it is unknown.
   * @throws `api_key_builtin`
   */
  updateApiKey(keyId: string, change: (before: ApiKey) => ApiKey): Promise<ApiKey | null>;
  /** Those of one project, newest first. */
  listApiKeys(page?: NamedPageRequest): Promise<Page<ApiKey>>;
  /**
   * Makes `secret` the key's own. The one before is accepted for `overlapMs` more; one from a rotation before that no longer.
   * @throws `api_key_not_found`, `api_key_builtin`
   */
  rotateApiKey(keyId: string, secret: string, overlapMs: number): Promise<ApiKey>;
  /** False when it was unknown. */
  revokeApiKey(keyId: string): Promise<boolean>;
  /** Notes that the key of `secret` was used now. */
  touchApiKey(secret: string): Promise<void>;
}
