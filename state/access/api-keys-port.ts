import type { ApiKey, Page, Scope } from '../../contracts/index.js';
import type { NamedPageRequest } from '../core/paging.js';

export interface ApiKeyInput {
  name: string;
  scopes: Scope[];
  /** Project that the key has access to; 'default' when absent. */
  project?: string;
  /** RFC 3339. */
  expires_at?: string | null;
  requests_per_minute?: number | null;
  /** The key comes from the configuration of a server, which writes it at each start. */
  builtin?: boolean;
}

export interface ApiKeys {
  /**
   * Accepts `secret` from now on; only its SHA-256 is stored. Repeating the call with the same secret replaces all fields but id and
   * creation time.
   */
  putApiKey(secret: string, key: ApiKeyInput): Promise<ApiKey>;
  /** Returns null when the secret is unknown or no longer valid for its key. The caller checks whether the key has expired. */
  findApiKey(secret: string): Promise<ApiKey | null>;
  getApiKey(keyId: string): Promise<ApiKey | null>;
  /**
   * Sets the name, expiry and rate limit that `change` returns, for all secrets of the key. `change` may be called more than once.
   * Returns null when the key is unknown.
   * @throws `api_key_builtin`
   */
  updateApiKey(keyId: string, change: (before: ApiKey) => ApiKey): Promise<ApiKey | null>;
  /** Lists the keys of one project, newest first. */
  listApiKeys(page?: NamedPageRequest): Promise<Page<ApiKey>>;
  /**
   * Makes `secret` the key's current secret. The previous secret is accepted for `overlapMs` more; older secrets are rejected at once.
   * Without an overlap, the key's browser sessions end as well: they may have begun with the previous secret.
   * @throws `api_key_not_found`, `api_key_builtin`
   */
  rotateApiKey(keyId: string, secret: string, overlapMs: number): Promise<ApiKey>;
  /** Ends the key and its browser sessions. Returns false when the key was unknown. */
  revokeApiKey(keyId: string): Promise<boolean>;
  /** Records that the key was used now. */
  touchApiKey(keyId: string): Promise<void>;
}
