/**
 * TLS 1.3 between the workers of one world, without certificates: each side proves that it knows the world's token,
 * which is the pre-shared key. The key's identity is the world's id. Session keys come from a Diffie-Hellman exchange,
 * so a token that leaks later decrypts no recording.
 */
import { constants } from 'node:crypto';
import { connect, type TLSSocket, type TlsOptions } from 'node:tls';
import { ZerofleetError } from '../../../contracts/index.js';
import type { WorldPlan } from '../../../state/index.js';

const COMMON = {
  minVersion: 'TLSv1.3',
  // OpenSSL accepts an external key only for suites with SHA-256.
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256',
} as const;

/** World id that a peer named, on the server's side. */
const claimed = new WeakMap<TLSSocket, string>();

/**
 * Returns the world id that the peer of a connection named, or null; its token is proven once the connection is secure.
 */
export function worldOf(socket: TLSSocket): string | null {
  return claimed.get(socket) ?? null;
}

/** @param tokenOf returns the token of a world that expects members here, or null */
export function serverOptions(tokenOf: (worldId: string) => string | null): TlsOptions {
  return {
    ...COMMON,
    // Session tickets would allow a resumption without proof of the key.
    secureOptions: constants.SSL_OP_NO_TICKET,
    pskCallback: (socket, worldId) => {
      claimed.set(socket, worldId);
      const token = tokenOf(worldId);
      return token === null ? null : keyOf(token);
    },
  };
}

/** Connects to the leader of a world. The connection fails unless the leader proves that it knows the token. */
export function connectToLeader({ world_id, token, leader }: Omit<WorldPlan, 'members'>): TLSSocket {
  const psk = keyOf(token);
  return connect({
    ...COMMON,
    host: leader.address,
    port: leader.port,
    pskCallback: () => ({ psk, identity: world_id }),
    // A server without the token may still offer a certificate: none is trusted, and no name matches.
    ca: [],
    checkServerIdentity: () =>
      new ZerofleetError('link_refused', 'the leader did not prove the token of the world'),
  });
}

/**
 * Returns a readable reason of a failed handshake; OpenSSL's messages contain memory addresses and source file names.
 */
export function tlsReason(error: Error & { reason?: string }): string {
  return error.reason ?? error.message;
}

function keyOf(token: string): Buffer {
  return Buffer.from(token, 'hex');
}
