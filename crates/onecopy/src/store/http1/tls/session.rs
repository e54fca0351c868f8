//! What rustls goes on doing once records are ours: the keys that follow, and tickets.

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::{AlertDescription, ProtocolVersion, SupportedCipherSuite};

use super::breach::Breach;
use super::key::Secret;
use super::open::Opener;
use super::seal::Sealer;

/// The secrets of a connection after its handshake.
pub(super) trait Session: Send + Sync {
    /// What opens that which the other side seals after its key update.
    fn next_to_open(&mut self) -> Result<Opener, Breach>;

    /// What seals after ours.
    fn next_to_seal(&mut self) -> Result<Sealer, Breach>;

    /// Keeps a ticket for the next connection to the same server.
    fn keep_ticket(&mut self, payload: &[u8]) -> Result<(), Breach>;
}

/// The session that rustls keeps.
pub(super) struct Agreed {
    connection: KernelConnection<ClientConnectionData>,
}

impl Agreed {
    pub(super) fn new(connection: KernelConnection<ClientConnectionData>) -> Self {
        Self { connection }
    }

    pub(super) fn is_tls13(&self) -> bool {
        self.connection.protocol_version() == ProtocolVersion::TLSv1_3
    }

    /// Records under one key at most.
    pub(super) fn limit(&self) -> u64 {
        match self.connection.negotiated_cipher_suite() {
            SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
            SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
        }
    }
}

impl Session for Agreed {
    fn next_to_open(&mut self) -> Result<Opener, Breach> {
        let (seq, secrets) = self.connection.update_rx_secret().map_err(no_key)?;
        Opener::new(&Secret::read(
            &secrets,
            self.is_tls13(),
            (seq, self.limit()),
        )?)
    }

    fn next_to_seal(&mut self) -> Result<Sealer, Breach> {
        let (seq, secrets) = self.connection.update_tx_secret().map_err(no_key)?;
        Sealer::new(&Secret::read(
            &secrets,
            self.is_tls13(),
            (seq, self.limit()),
        )?)
    }

    fn keep_ticket(&mut self, payload: &[u8]) -> Result<(), Breach> {
        self.connection
            .handle_new_session_ticket(payload)
            .map_err(|error| {
                Breach::new(AlertDescription::DecodeError, "a ticket that is none")
                    .with_source(error)
            })
    }
}

fn no_key(error: rustls::Error) -> Breach {
    Breach::new(
        AlertDescription::InternalError,
        "the next key cannot be derived",
    )
    .with_source(error)
}
