import type { SignInMethods } from '../../../contracts/index.js';
import type { OperationHandler } from '../types.js';

export const getSignInMethods: OperationHandler<'getSignInMethods'> = ({ server }): SignInMethods => {
  const { oidc } = server.services;
  return { oidc: oidc && { name: oidc.settings.name, path: 'sign-in/oidc' } };
};
