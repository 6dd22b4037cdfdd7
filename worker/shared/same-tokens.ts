import { ZerofleetError } from '../../contracts/index.js';

/** Tokens of a job's data, with the worker or checkpoint they belong to. */
interface TokensOf {
  owner: string;
  /** PreparedTokens.tokens_digest */
  digest: string;
}

/**
 * Checks that a job's data has the same tokens on two workers, or now and at a checkpoint. Other tokens would be
 * another training.
 * @throws ZerofleetError `tokens_mismatch`
 */
export function requireSameTokens(now: TokensOf, before: TokensOf): void {
  if (now.digest === before.digest) return;
  throw new ZerofleetError(
    'tokens_mismatch',
    `the tokens of the data differ: ${now.owner} has ${now.digest}, ${before.owner} has ${before.digest}; run the same version of ` +
      'zerofleet, of its npm packages and of Node.js on all workers of the pool, the version that the job started with, and empty their cache ' +
      'directories; to continue with other tokens, create a new job that starts from the weights of a checkpoint ' +
      '(model.init_from with restore: weights)',
  );
}
