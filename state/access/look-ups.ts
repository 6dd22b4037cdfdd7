import type { ApiKey, Scope, Share, User } from '../../contracts/index.js';
import type { CommandReply } from '../core/command-runner.js';
import type { StoreContext } from '../core/context.js';
import type { CommandName } from '../core/library.js';
import { LookUpCache } from './look-up-cache.js';

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

/** A session without its principal. */
export interface SessionRecord {
  principal_id: string;
  /** Unix time in ms. */
  expires_at: number;
  secure: boolean;
}

/** The look-ups of keys, shares and sessions, and their changes, which make every server look them up again. */
export class LookUps {
  /** By the hash of a secret, and by the id. */
  readonly keys = new LookUpCache<ApiKey>();
  /** By the hash of a token, and by the id. */
  readonly shares = new LookUpCache<Principal>();
  /** By the id. */
  readonly users = new LookUpCache<Principal>();
  /** By the hash of the token. */
  readonly sessions = new LookUpCache<SessionRecord>();
  private isWatching = false;

  constructor(private readonly context: StoreContext) {}

  /** Subscribes on the first look-up only. Without a subscription, cached values expire by age. */
  watch(): void {
    if (this.isWatching) return;
    this.isWatching = true;
    this.context.subscriptions
      .add(`${this.context.prefix}:principals:changed`, () => this.forget())
      .catch(() => {
        this.isWatching = false;
      });
  }

  /** The server that makes a change clears its own caches at once; other servers do so when the message arrives. */
  async change(command: CommandName, call: Record<string, unknown>): Promise<CommandReply> {
    try {
      return await this.context.commands.run(command, call);
    } finally {
      this.forget();
    }
  }

  private forget(): void {
    this.keys.forget();
    this.shares.forget();
    this.users.forget();
    this.sessions.forget();
  }
}
