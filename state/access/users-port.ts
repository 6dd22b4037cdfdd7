import type { Scope, SignedInUser } from '../../contracts/index.js';
import type { Principal } from './principals-port.js';

/** A user as the OpenID provider describes them, and their rights. */
export interface UserInput {
  issuer: string;
  subject: string;
  name: string;
  email: string | null;
  project: string;
  scopes: readonly Scope[];
}

/** Users of an OpenID provider, in Redis only, until the end of their last sign-in. */
export interface Users {
  /** Records a user who has signed in. Rights of an earlier sign-in are replaced, also for its sessions. */
  putUser(user: UserInput, lifeMs: number): Promise<Principal>;
  /** Returns the users of a project whose sign-in has not ended, the newest sign-in first. */
  listUsers(project: string): Promise<SignedInUser[]>;
}
