//! Certificates made for a test, a server that has them, and clients that know their issuer.
use super::{Client, DEADLINE, Server};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use tricorn_io::tls::{Bundle, Identity, Page, Source, publish};
use tricorn_io::{Config, Door, TlsDoors};

pub type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// An issuer of certificates.
pub struct Authority {
    pub issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "Authority");
        let certificate = params.self_signed(&key).expect("a certificate");
        Authority { pem: certificate.pem(), issuer: Issuer::new(params, key) }
    }

    /// A list that has this serial number.
    pub fn revoke(&self, serial: u64) -> String {
        let revoked = rcgen::RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: rcgen::date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(2090, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("PEM")
    }

    pub fn server(&self, names: &[&str]) -> Identity {
        self.identity(names, "server", KeyPair::generate().expect("a key"), ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub fn rsa(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key");
        self.identity(names, "rsa", key, ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub fn client(&self, name: &str) -> Identity {
        self.identity(
            &["client.example"],
            name,
            KeyPair::generate().expect("a key"),
            ExtendedKeyUsagePurpose::ClientAuth,
        )
    }

    fn identity(&self, names: &[&str], common: &str, key: KeyPair, usage: ExtendedKeyUsagePurpose) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages = vec![usage];
        params.distinguished_name.push(DnType::CommonName, common);
        params.serial_number = Some(SERIAL.into());
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity { label: common.into(), chain: certificate.pem().into(), key: key.serialize_pem().into(), ocsp: None }
    }
}

/// That of every certificate.
pub const SERIAL: u64 = 77;

/// What servers and clients of a test are.
pub struct World {
    pub authority: Authority,
    pub page: Page,
}

impl World {
    /// With one certificate, of `localhost` and `*.site.example`.
    pub fn new() -> World {
        World::with(|_, _| {})
    }

    pub fn with(change: impl FnOnce(&Authority, &mut Bundle)) -> World {
        let (authority, page) = (Authority::new(), Page::private());
        let certificates = vec![authority.server(&["localhost", "*.site.example"])];
        let mut bundle = Bundle { certificates, ..Bundle::default() };
        change(&authority, &mut bundle);
        publish(&page, &bundle).expect("it is right");
        World { authority, page }
    }

    /// This configuration, with TLS at the first listener.
    pub fn secure(&self, config: Config) -> Config {
        let source = Arc::new(Source::new(self.page).expect("certificates"));
        let (handshake_timeout, pending_handshakes) = (super::NEVER, 512);
        let tls = TlsDoors { source, handshake_timeout, pending_handshakes, buffer_total: 64 << 20, redirect: false };
        Config {
            doors: vec![Door { tls: true, proxy_protocol: config.proxy_protocol.clone(), front_end: None }],
            tls: Some(Box::new(tls)),
            ..config
        }
    }

    pub fn client(&self) -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(self.roots())
            .with_no_client_auth()
    }

    pub fn client_with(&self, identity: &Identity) -> ClientConfig {
        self.with_identity(identity, rustls::DEFAULT_VERSIONS)
    }

    pub fn client_of_version(
        &self,
        identity: &Identity,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> ClientConfig {
        self.with_identity(identity, &[version])
    }

    fn with_identity(
        &self,
        identity: &Identity,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ClientConfig {
        let chain = CertificateDer::pem_slice_iter(&identity.chain).collect::<Result<_, _>>().expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(&identity.key).expect("PEM");
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(self.roots())
            .with_client_auth_cert(chain, key)
            .expect("a key of that certificate");
        config.resumption = Resumption::disabled();
        config
    }

    pub fn of_version(&self, version: &'static rustls::SupportedProtocolVersion) -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[version])
            .expect("versions")
            .with_root_certificates(self.roots())
            .with_no_client_auth()
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).expect("PEM")).expect("an issuer");
        roots
    }

    pub fn connect(&self, server: &Server) -> TlsClient {
        connect(server.address, Arc::new(self.client()), "localhost")
    }
}

/// Connects, and does nothing of the handshake yet.
pub fn connect(address: SocketAddr, config: Arc<ClientConfig>, name: &str) -> TlsClient {
    over(TcpStream::connect(address).expect("a connection"), config, name)
}

pub fn over(socket: TcpStream, config: Arc<ClientConfig>, name: &str) -> TlsClient {
    socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    socket.set_write_timeout(Some(DEADLINE)).expect("a timeout");
    socket.set_nodelay(true).expect("no delay");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    Client::over(StreamOwned::new(ClientConnection::new(config, name).expect("a client"), socket))
}

/// Does the handshake; the error says what the server, or the client, did not like.
pub fn shake(client: &mut TlsClient) -> Result<(), String> {
    let stream = &mut client.stream;
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| error.to_string())?;
    }
    Ok(())
}
