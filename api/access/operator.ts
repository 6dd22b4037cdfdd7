import { ZerofleetError } from '../../contracts/index.js';
import type { Principal } from '../../state/index.js';

export function isOperator(principal: Pick<Principal, 'scopes'> | null): boolean {
  return principal?.scopes.includes('operator') ?? false;
}

interface Asking {
  principal: Principal | null;
  /** Records of the project of the principal. */
  records: { project: string };
}

/**
 * Returns the project of a list: that of the sender, or another one for operators. @throws ZerofleetError
 * `insufficient_scope`
 */
export function projectAsked(asked: string | undefined, { principal, records }: Asking): string {
  const { project } = records;
  if (asked === undefined || asked === project || isOperator(principal)) return asked ?? project;
  throw new ZerofleetError(
    'insufficient_scope',
    'only a key with the scope operator may read other projects',
  );
}
