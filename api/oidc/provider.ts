/** The OpenID provider: authorization code with PKCE, by `openid-client`. */
import * as client from 'openid-client';
import type { Claims } from './rights.js';
import type { OidcSettings } from './settings.js';

/** Seconds after which the provider counts as away. */
const TIMEOUT_SECONDS = 10;

/** Secrets of one sign-in, which its browser keeps. */
export interface SignInSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** Reason why a sign-in has failed, as the console names it. */
type SignInProblem =
  | 'provider_unavailable'
  | 'sign_in_refused'
  | 'sign_in_mismatch'
  | 'sign_in_expired'
  | 'role_missing';

export class SignInError extends Error {
  override readonly name = 'SignInError';

  constructor(
    readonly problem: SignInProblem,
    options?: ErrorOptions,
  ) {
    super(problem, options);
  }
}

export class OidcProvider {
  private discovered: Promise<client.Configuration> | null = null;

  constructor(readonly settings: OidcSettings) {}

  /** Begins a sign-in. @returns address at the provider. @throws SignInError `provider_unavailable` */
  async begin(): Promise<{ url: URL; secrets: SignInSecrets }> {
    const configuration = await this.configuration();
    const [state, nonce, verifier] = [
      client.randomState(),
      client.randomNonce(),
      client.randomPKCECodeVerifier(),
    ];
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: this.redirectUri,
      scope: this.settings.scopes,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    });
    return { url, secrets: { state, nonce, verifier } };
  }

  /**
   * Ends a sign-in: exchanges the code of the provider's answer, and checks the ID token.
   * @param query of the request, with its question mark
   * @throws SignInError
   */
  async finish(query: string, { state, nonce, verifier }: SignInSecrets): Promise<Claims> {
    const configuration = await this.configuration();
    // The configured address, because headers of the request may be anything.
    const answered = new URL(this.redirectUri + query);
    try {
      const tokens = await client.authorizationCodeGrant(configuration, answered, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new SignInError('sign_in_mismatch');
      return claims;
    } catch (error) {
      throw error instanceof SignInError ? error : new SignInError(problemOf(error), { cause: error });
    }
  }

  private get redirectUri(): string {
    return `${this.settings.public_url}sign-in/oidc/callback`;
  }

  /** Reads the provider's metadata once; a failure is tried again by the next sign-in. */
  private async configuration(): Promise<client.Configuration> {
    const { issuer, client_id, client_secret } = this.settings;
    this.discovered ??= client.discovery(
      new URL(issuer),
      client_id,
      undefined,
      client_secret === null ? client.None() : client.ClientSecretBasic(client_secret),
      {
        timeout: TIMEOUT_SECONDS,
        execute: [
          // The signature of the ID token is checked by the provider's keys.
          client.enableNonRepudiationChecks,
          // A provider on this machine or a private network may have no TLS: the operator has named it so.
          ...(issuer.startsWith('http:') ? [client.allowInsecureRequests] : []),
        ],
      },
    );
    try {
      return await this.discovered;
    } catch (error) {
      this.discovered = null;
      throw new SignInError('provider_unavailable', { cause: error });
    }
  }
}

function problemOf(error: unknown): SignInProblem {
  if (error instanceof client.AuthorizationResponseError) return 'sign_in_refused';
  if (error instanceof client.ResponseBodyError)
    return error.error === 'invalid_grant' ? 'sign_in_expired' : 'provider_unavailable';
  // The library's own checks: of the state, the ID token, its issuer, audience, nonce and times.
  if (error instanceof client.ClientError && String(error.code).startsWith('OAUTH_'))
    return error.code === 'OAUTH_TIMEOUT' ? 'provider_unavailable' : 'sign_in_mismatch';
  return 'provider_unavailable';
}
