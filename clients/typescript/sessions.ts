import type { SignedInUser, SignInCode, SignInMethods } from '../../contracts/types.js';
import { bodyOf, consoleAddress, type Http } from './transport.js';

/** Address that signs one browser in, and the time at which it expires. */
export interface SignInAddress {
  url: string;
  /** RFC 3339. */
  expires_at: string;
}

/** Browser sessions. */
export class Sessions {
  /** @param baseUrl URL of the API, which serves the console as well */
  constructor(
    private readonly http: Http,
    private readonly baseUrl: string,
  ) {}

  /** How a browser can sign in besides a key; needs no key. */
  methods(): Promise<SignInMethods> {
    return bodyOf('sign-in methods', this.http.GET('/v1/sign-in-methods'));
  }

  /** Creates a code that signs one browser in, once and within two minutes. */
  code(): Promise<SignInCode> {
    return bodyOf('sign-in code', this.http.POST('/v1/sign-in-codes'));
  }

  /** Creates a code, as the address of the console. The code is in its fragment, which browsers send to no server. */
  async address(): Promise<SignInAddress> {
    const { code, expires_at } = await this.code();
    return { url: consoleAddress(this.baseUrl, ['sign-in', code]), expires_at };
  }

  /** Users whom the OpenID provider has signed in; requires the scope `admin`. Operators may list another project. */
  async users(project?: string): Promise<SignedInUser[]> {
    const params = { query: { project } };
    return (await bodyOf('list of users', this.http.GET('/v1/users', { params }))).data;
  }

  /** Ends all sessions of another key, user or share, and its codes; requires the scope `admin`. */
  async endOf(principalId: string): Promise<void> {
    const params = { path: { principal_id: principalId } };
    await bodyOf(
      `end of sessions of ${principalId}`,
      this.http.DELETE('/v1/principals/{principal_id}/sessions', { params }),
    );
  }

  /** Ends all sessions of the key, and its codes. The key stays valid. */
  async endAll(): Promise<void> {
    await bodyOf('end of sessions', this.http.DELETE('/v1/sessions'));
  }
}
