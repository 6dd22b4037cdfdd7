import { ZerofleetError } from '../../contracts/index.js';

/** Tokens that were made of a job's data, by whom or where it stands. */
export interface MadeTokens {
  whose: string;
  /** PreparedTokens.tokens_digest */
  digest: string;
}

/**
 * Checks that a job's data became the same tokens twice: on two workers, or now and before a checkpoint. Other tokens would be another
 * training.
 * @throws ZerofleetError `tokens_differ`
 */
export function requireSameTokens(now: MadeTokens, before: MadeTokens): void {
  if (now.digest === before.digest) return;
  throw new ZerofleetError(
    'tokens_differ',
    `the data became other tokens: ${now.whose} has ${now.digest}, ${before.whose} has ${before.digest}; run the same version of ` +
      'zerofleet, of its npm packages and of Node.js on all workers of the pool, the one that the job began with, and empty their cache ' +
      'directories; to go on with other tokens, make a new job that begins with the weights of a checkpoint ' +
      '(model.init_from with restore: weights)',
  );
}
