import type { ApiKey, Scope, Share, User } from '../../contracts/index.js';

/** Who sends a request: an API key, a share, or a user. Exactly one of `api_key`, `share` and `user` is not null. */
export interface Principal {
  id: string;
  /** Name in the audit log. */
  name: string;
  project: string;
  scopes: readonly Scope[];
  /** Null: the limit of the server. */
  requests_per_minute: number | null;
  /** RFC 3339. */
  expires_at: string | null;
  api_key: ApiKey | null;
  /** A share reads its job only. */
  share: Share | null;
  /** A user of the OpenID provider, whose rights are those of the last sign-in. */
  user: User | null;
}

export interface Principals {
  /**
   * Returns the principal of an API key or of the token of a share; null when the secret is unknown. The caller checks whether the
   * principal has expired.
   */
  findPrincipal(secret: string): Promise<Principal | null>;
  /** Returns the principal with this id; null when it is unknown, was revoked or has expired. */
  getPrincipal(id: string): Promise<Principal | null>;
}
