/**
 * TLS 1.3 between the workers of one world, without certificates: each side proves that it knows the world's token, which is the
 * pre-shared key. The identity of the key is the world's id. The keys of the connection are agreed on by Diffie-Hellman, so a token
 * that becomes known later opens no recording.
 */
import { constants } from 'node:crypto';
import { connect, type TLSSocket, type TlsOptions } from 'node:tls';
import { ZerofleetError } from '../../contracts/index.js';
import type { WorldPlan } from '../../state/index.js';

const COMMON = {
  minVersion: 'TLSv1.3',
  // OpenSSL takes an external key for suites with SHA-256 alone.
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256',
} as const;

/** World id that a peer named, on the server's side. */
const claimed = new WeakMap<TLSSocket, string>();

/** The world id that the peer of a connection named, or null; it has proven its token once the connection is secure. */
export function worldOf(socket: TLSSocket): string | null {
  return claimed.get(socket) ?? null;
}

/** @param tokenOf token of a world that expects members here, or null */
export function serverOptions(tokenOf: (worldId: string) => string | null): TlsOptions {
  return {
    ...COMMON,
    // Without tickets nobody gets in who does not prove the key.
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
    // Without the token a server may still offer a certificate: none is trusted, and no name fits.
    ca: [],
    checkServerIdentity: () =>
      new ZerofleetError('link_refused', 'the leader did not prove the token of the world'),
  });
}

/** The reason of a failed handshake, for people; OpenSSL's messages have addresses of its memory and its sources in them. */
export function tlsReason(error: Error & { reason?: string }): string {
  return error.reason ?? error.message;
}

function keyOf(token: string): Buffer {
  return Buffer.from(token, 'hex');
}
