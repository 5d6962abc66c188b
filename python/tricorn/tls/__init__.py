"""TLS in the arbiter: from the settings to the page that workers read.

    from_settings    the plan: files by name, authorities, versions
    from_context     the same from the hook `ssl_context`
    ciphers          OpenSSL's cipher lists, in the core's suites
    plan             their result
    files            the files of a plan: read, and looked at for changes
    tickets          the keys of session tickets
    certificates     the bundle of all that, judged by the core and published

Kinds of values that its settings have are in `config.kinds`.
"""
